"""Verdicts: names, severity, aggregation."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from adjudge.domain.states import SubmissionStatus


class Verdict(StrEnum):
    """The verdict on one test case or on a submission, declared from best to worst."""

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
        return _TITLES[self]

    @property
    def severity(self) -> int:
        """Position in the precedence; the highest one decides under WORST."""
        return _SEVERITY[self]

    @property
    def status(self) -> SubmissionStatus:
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
    """How the verdicts of test cases become the submission's verdict."""

    FIRST = "first"
    WORST = "worst"


def aggregate_verdicts(verdicts: Iterable[Verdict], rule: VerdictAggregation = VerdictAggregation.FIRST) -> Verdict:
    """Aggregate the verdicts of test cases, in test order.

    A system error has precedence under both rules: no verdict may be based on test cases that did not run. No test
    cases at all is a system error as well.
    """
    seen = list(verdicts)
    if not seen or Verdict.SE in seen:
        return Verdict.SE
    if rule is VerdictAggregation.WORST:
        return max(seen, key=lambda verdict: verdict.severity)
    return next((verdict for verdict in seen if verdict is not Verdict.AC), Verdict.AC)
