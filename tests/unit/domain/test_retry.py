"""Which errors are retried, and the delays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.errors import AdjudgeError, Conflict, InternalFault, InvalidInput, NotFound, Unavailable
from adjudge.domain.retry import RetryClass, RetryPolicy, classify


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
