"""Verdicts, limits, retries and ids."""

from __future__ import annotations

import itertools
import time
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.errors import AdjudgeError, Conflict, InternalFault, InvalidInput, NotFound, Unavailable
from adjudge.domain.ids import new_id, parse_id, uuid7
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.retry import RetryClass, RetryPolicy, classify
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


def test_retry_delays_double_up_to_max_retries() -> None:
    policy = RetryPolicy()
    assert [policy.delay_ms(failures, 0.0) for failures in (0, 1, 2, 3)] == [2_000, 2_000, 4_000, 8_000]
    assert policy.max_attempts == 4
    assert policy.delay_ms(50, 0.0) == policy.cap_ms


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_jitter_adds_at_most_a_tenth(failures: int, random_unit: float) -> None:
    plain = RetryPolicy().delay_ms(failures, 0.0)
    assert plain <= RetryPolicy().delay_ms(failures, random_unit) <= plain * 1.1 + 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidInput(), RetryClass.FINAL),
        (NotFound("problem", "x"), RetryClass.FINAL),
        (Conflict(), RetryClass.FINAL),
        (Unavailable(), RetryClass.INFRASTRUCTURE),
        (InternalFault(), RetryClass.INFRASTRUCTURE),
        (AdjudgeError(), RetryClass.INFRASTRUCTURE),
        (OSError(), RetryClass.INFRASTRUCTURE),
    ],
)
def test_classify_errors(error: Exception, expected: RetryClass) -> None:
    assert classify(error) is expected


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_invalid_limit_names_field(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name}: ") as refused:
        Limits(**{name: -1})
    assert refused.value.fields == {"field": name}
    if name not in ("stack_bytes", "input_bytes"):
        with pytest.raises(InvalidInput):
            Limits(**{name: 0})


def test_limits_scale_for_a_slower_language() -> None:
    scaled = Limits(cpu_ms=1_000, wall_ms=3_000, memory_bytes=MIB).scaled(2.5, extra_memory_bytes=MIB)
    assert (scaled.cpu_ms, scaled.wall_ms, scaled.memory_bytes) == (2_500, 7_500, 2 * MIB)
    assert scaled.processes == Limits().processes


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_new_id_is_uuid7_sorted_by_time(unix_ms: int, bits: int) -> None:
    text = uuid7(unix_ms, bits)
    assert parse_id(text) == text
    assert int(text.replace("-", "")[:12], 16) == unix_ms
    assert uuid7(max(0, unix_ms - 1), 2**74 - 1) < text or unix_ms == 0


def test_ids_within_a_millisecond_sort_by_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(1_800_000_000_000_000_000, 250)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    made = [new_id() for _ in range(8_000)]
    assert made == sorted(made)
    assert [parse_id(text) for text in made] == made


def test_new_ids_are_unique() -> None:
    assert len({new_id() for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize("text", ["", "1", "0189-", "018f0000-0000-4000-8000-000000000000", "x" * 36])
def test_invalid_id_error_names_field(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^job_id: ") as refused:
        parse_id(text, "job_id")
    assert refused.value.fields == {"field": "job_id"}


def test_parse_id_normalizes() -> None:
    text = new_id()
    assert parse_id(f"  {text.upper()}\n") == text
