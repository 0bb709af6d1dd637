"""The interface of handlers. A handler runs jobs of one kind and is registered under the name of the kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import Job


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
    may_spawn_followups: bool = False
    """Whether the job may have follow-up jobs, one of which its worker could run immediately."""


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
class PreloadingHandler(Protocol):
    """A handler that reads the preloaded data of its jobs in the transaction that claims them, for many at once."""

    async def preload(self, tx: Tx, jobs: Sequence[Job]) -> Mapping[str, object]:
        """The preloaded data of jobs, by job id. A job without it reads its inputs itself."""
        ...


@runtime_checkable
class InputCaching(Protocol):
    """A handler that may know the inputs of follow-up jobs without reading them."""

    def is_instant(self, job_payload: Mapping[str, Any]) -> bool:
        """Whether the job finishes almost immediately, so that many of them at once delay no other job."""
        ...

    def preload_cached(self, jobs: Sequence[Job], ended: Sequence[tuple[Job, object]]) -> Mapping[str, object]:
        """The preloaded data of follow-up jobs, by job id, given finished jobs whose results were written.

        A job whose inputs are not all known is left out and reads them itself.
        """
        ...


async def with_preloaded(tx: Tx, handlers: Mapping[str, Handler], jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs, which this transaction has claimed, with preloaded data if their handler provides it."""
    found: dict[str, object] = {}
    for kind in sorted({job.kind for job in jobs}):
        handler: object = handlers.get(kind)
        if isinstance(handler, PreloadingHandler):
            found |= await handler.preload(tx, [job for job in jobs if job.kind == kind])
    return tuple(job._replace(preloaded=found[job.id]) if job.id in found else job for job in jobs)


def with_cached_inputs(
    handlers: Mapping[str, InputCaching], jobs: Sequence[Job], ended: Sequence[tuple[Job, object]]
) -> tuple[Job, ...]:
    """The jobs, with preloaded data if their handler knows all of it."""
    found: dict[str, object] = {}
    for kind, handler in handlers.items():
        own = [(job, outcome) for job, outcome in ended if job.kind == kind]
        found |= handler.preload_cached([job for job in jobs if job.kind == kind], own)
    return tuple(job._replace(preloaded=found.get(job.id)) for job in jobs)
