"""The interface of handlers. A handler runs jobs of one kind and is registered under the name of the kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adjudge.domain.states import JobStatus
from adjudge.store.jobs.models import Job, JobResult


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The result of a job. Its job listener writes the typed result in the transaction that finishes the job."""

    status: JobStatus = JobStatus.SUCCEEDED
    result: Mapping[str, Any] | None = None
    typed_result: object = None
    error_code: str | None = None
    """The error code of a job that failed for good, for its dead letter."""
    error: str | None = None
    dead_letter: bool = True
    """Whether a failed job gets a dead letter: not if another party failed and the owner of the job can repeat it."""


class Handler(Protocol):
    """Runs jobs of one kind.

    It may be canceled at any await, because the lease is lost or the job was canceled; it then stops what it started
    and returns. Its exceptions are classified in one place: transient errors of the system are retried, all others are
    final.
    """

    async def run(self, job: Job) -> HandlerResult: ...

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limit keys that the job uses (``language:cpp``), known before it is claimed."""
        ...


@runtime_checkable
class FollowUpHandler(Handler, Protocol):
    """A handler whose jobs may have follow-up jobs, which their worker may run immediately."""

    def is_instant(self, job_payload: Mapping[str, Any]) -> bool:
        """Whether the job finishes almost immediately, so that many of them at once delay no other job."""
        ...

    def committed(self, results: Sequence[JobResult]) -> None:
        """These results were written; called before the follow-up jobs start, which may use them as inputs."""
        ...
