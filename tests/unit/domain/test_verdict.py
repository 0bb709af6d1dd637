"""Severity, status and aggregation of verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.states import SUBMISSION, SubmissionStatus
from adjudge.domain.verdict import Verdict, VerdictAggregation, aggregate_verdicts

VERDICTS = st.lists(st.sampled_from(Verdict), min_size=1)


def test_verdict_severity_order() -> None:
    assert " ".join(Verdict) == "AC PA WA OLE TLE MLE RE CE SE"
    assert [verdict.severity for verdict in Verdict] == list(range(9))
    assert len({verdict.title for verdict in Verdict}) == 9


@pytest.mark.parametrize("verdict", Verdict)
def test_verdict_maps_to_submission_status(verdict: Verdict) -> None:
    expected = {
        "AC": SubmissionStatus.ACCEPTED,
        "WA": SubmissionStatus.WRONG_ANSWER,
        "PA": SubmissionStatus.WRONG_ANSWER,
    }
    assert verdict.status == expected.get(verdict, SubmissionStatus.ERROR)
    assert verdict.status in SUBMISSION.terminal


@given(VERDICTS, st.sampled_from(VerdictAggregation))
def test_system_error_has_precedence(verdicts: list[Verdict], rule: VerdictAggregation) -> None:
    assert (aggregate_verdicts(verdicts, rule) is Verdict.SE) is (Verdict.SE in verdicts)


@given(VERDICTS, st.sampled_from(VerdictAggregation))
def test_accepted_requires_all_tests(verdicts: list[Verdict], rule: VerdictAggregation) -> None:
    assert (aggregate_verdicts(verdicts, rule) is Verdict.AC) is (set(verdicts) == {Verdict.AC})
    assert aggregate_verdicts(verdicts, rule) in verdicts


def test_aggregation_by_first_or_worst() -> None:
    seen = [Verdict.AC, Verdict.WA, Verdict.RE, Verdict.TLE]
    assert aggregate_verdicts(seen) is Verdict.WA
    assert aggregate_verdicts(seen, VerdictAggregation.WORST) is Verdict.RE
    assert aggregate_verdicts([]) is Verdict.SE
