"""Verdicts: what people read, how bad each is, and how many become one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from adjudge.domain.states import SubmissionStatus


class Verdict(StrEnum):
    """What is said of a program, on one test or on all. Declared from best to worst."""

    AC = "AC"
    PA = "PA"
    WA = "WA"
    OLE = "OLE"
    TLE = "TLE"
    MLE = "MLE"
    RE = "RE"
    CE = "CE"
    SE = "SE"

    @property
    def title(self) -> str:  # type: ignore[override]  # a StrEnum member is a str, whose title() nobody needs here
        """The verdict in words."""
        return _TITLES[self]

    @property
    def severity(self) -> int:
        """Its place in the precedence: the higher one wins where the worst test decides."""
        return _SEVERITY[self]

    @property
    def is_system_error(self) -> bool:
        """Whether Adjudge failed rather than the program; such a result is retried, never believed."""
        return self is Verdict.SE

    @property
    def status(self) -> SubmissionStatus:
        """The submission status that this verdict ends in."""
        if self is Verdict.AC:
            return SubmissionStatus.ACCEPTED
        if self in (Verdict.WA, Verdict.PA):
            return SubmissionStatus.WRONG_ANSWER
        return SubmissionStatus.ERROR


_TITLES = {
    Verdict.AC: "Accepted",
    Verdict.PA: "Partial score",
    Verdict.WA: "Wrong answer",
    Verdict.OLE: "Output limit exceeded",
    Verdict.TLE: "Time limit exceeded",
    Verdict.MLE: "Memory limit exceeded",
    Verdict.RE: "Runtime error",
    Verdict.CE: "Compile error",
    Verdict.SE: "System error",
}
_SEVERITY = {verdict: rank for rank, verdict in enumerate(Verdict)}


class VerdictAggregation(StrEnum):
    """Which test's verdict becomes the submission's."""

    FIRST = "first"
    WORST = "worst"


def aggregate_verdicts(verdicts: Iterable[Verdict], rule: VerdictAggregation = VerdictAggregation.FIRST) -> Verdict:
    """Fold the verdicts of tests, in test order, into one.

    A fault of ours outranks everything under both rules: no verdict about the program may stand on tests that did
    not really run. No tests at all is such a fault too.
    """
    seen = list(verdicts)
    if not seen or Verdict.SE in seen:
        return Verdict.SE
    if rule is VerdictAggregation.WORST:
        return max(seen, key=lambda verdict: verdict.severity)
    return next((verdict for verdict in seen if verdict is not Verdict.AC), Verdict.AC)
