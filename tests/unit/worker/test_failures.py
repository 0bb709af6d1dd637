"""The result of a failed attempt: final, or retried after the delay of the job or of the worker."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import JobStatus
from adjudge.store.jobs.models import Fence, Job
from adjudge.worker.failures import failed_result

POLICY = RetryPolicy(base_ms=1_000, cap_ms=10_000)


def _job(**payload: str) -> Job:
    fields: dict[str, object] = dict.fromkeys(Job._fields)
    return Job(**(fields | {"id": "job", "kind": "node", "payload": payload}))  # type: ignore[arg-type]


def _delay_ms(job: Job, attempt_id: int) -> int:
    return failed_result(job, Fence("job", attempt_id, "worker"), Unavailable(), POLICY, 0.0).delay_ms


@pytest.mark.parametrize(
    ("payload", "delays_ms"),
    [
        ({}, [1_000, 2_000, 4_000]),
        ({"backoff_ms": "300"}, [300, 600, 1_200]),
        ({"backoff_ms": "0"}, [0, 0, 0]),
        ({"backoff_ms": "6000"}, [6_000, 10_000, 10_000]),
    ],
)
def test_backoff_of_the_job_replaces_the_first_delay_but_not_the_cap(
    payload: dict[str, str], delays_ms: list[int]
) -> None:
    job = _job(**payload)
    assert [_delay_ms(job, attempt_id) for attempt_id in (1, 2, 3)] == delays_ms


def test_retry_stores_code_and_text_of_the_error() -> None:
    result = failed_result(_job(), Fence("job", 1, "worker"), OSError("disk\0full\ud800"), POLICY, 0.0)
    assert (result.status, result.reason) == (JobStatus.PENDING, "retry")
    assert (result.error_code, result.error) == ("OSError", "OSError: disk␀full?")


def test_error_of_the_caller_is_final() -> None:
    result = failed_result(_job(), Fence("job", 1, "worker"), InvalidInput("cfg: missing"), POLICY, 0.0)
    assert (result.status, result.delay_ms) == (JobStatus.FAILED, 0)
    assert result.error_code == "INVALID_INPUT"
