"""Whose failure it is that a job failed or a submission was not accepted."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from adjudge.domain.verdict import Verdict

JURY_FAULT: Final = "JURY_FAULT"
"""The error code of a judge run with a broken checker or package; errors of the judge itself are raised."""
FAILED: Final = "failed"
"""The reason of a job whose handler reported a final failure."""
_ACCEPTED: Final = frozenset({Verdict.AC, Verdict.PA})


class FailureClass(StrEnum):
    """Whose failure it is."""

    COMPILE = "compile"
    """The submitted program does not compile."""
    CONTESTANT = "contestant"
    """The submitted program is wrong, too slow, too large, or crashes."""
    PROBLEM = "problem"
    """A program or file of the problem is broken."""
    TASK = "task"
    """What another kind of job was to do failed for good: a node of a chain, the receiver of a webhook, an import."""
    INFRASTRUCTURE = "infrastructure"
    """The judge: a lost worker, an internal error, attempts used up, a job that no worker can run."""


def classify_verdict(verdict: Verdict) -> FailureClass | None:
    """The class of a verdict that a judge run gave; None for an accepted one and for SE, whose job has failed."""
    if verdict in _ACCEPTED or verdict is Verdict.SE:
        return None
    return FailureClass.COMPILE if verdict is Verdict.CE else FailureClass.CONTESTANT


def classify_failed_job(kind: str, reason: str | None, error_code: str | None) -> FailureClass:
    """The class of a job that has failed for good."""
    if error_code == JURY_FAULT:
        return FailureClass.PROBLEM
    return FailureClass.TASK if kind != "judge" and reason == FAILED else FailureClass.INFRASTRUCTURE
