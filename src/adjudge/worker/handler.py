"""What a kind of job is to a worker: a handler, registered under the kind's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.models import Job


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """How a job went. ``outcome`` is for its owner, who writes it in the transaction that ends the job."""

    status: JobStatus = JobStatus.SUCCEEDED
    result: Mapping[str, Any] | None = None
    typed_result: object = None
    error_code: str | None = None
    """Of a job that failed for good: whose fault it was, for its dead letter."""
    error: str | None = None
    dead_letter: bool = True
    """Whether a failed job becomes a dead letter: not where another party failed, whose owner can try again."""
    may_spawn_followups: bool = False
    """Whether jobs may follow from it, of which its worker could run one at once."""


class Handler(Protocol):
    """Runs jobs of one kind.

    It may be canceled at any await, when the lease is lost or nobody wants the job any more; it then stops what it
    started and returns. What it raises is classified in one place: ours and passing is tried again, the rest is final.
    """

    async def run(self, job: Job) -> HandlerResult:
        """Do the work."""
        ...

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the limited things it uses (``language:cpp``), known before the job is claimed."""
        ...


@runtime_checkable
class PreloadingHandler(Protocol):
    """A handler that reads what its jobs need to know in the transaction that claims them, for many at once."""

    async def preload(self, tx: Tx, jobs: Sequence[Job]) -> Mapping[str, object]:
        """What jobs need to know, by their id. One that is left out finds out by itself."""
        ...


@runtime_checkable
class InputCaching(Protocol):
    """A handler whose jobs follow from one another, and which may know without reading what the next one needs."""

    def is_instant(self, job_payload: Mapping[str, Any]) -> bool:
        """Whether such a job is over in a moment, so that running many of them at once keeps nobody waiting."""
        ...

    def preload_cached(self, jobs: Sequence[Job], ended: Sequence[tuple[Job, object]]) -> Mapping[str, object]:
        """What jobs need to know, by their id, given those that they follow from, with outcomes that stand.

        One that needs to know more is left out, and finds out by itself.
        """
        ...


async def with_preloaded(tx: Tx, handlers: Mapping[str, Handler], jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs, which this transaction has claimed, each with its brief where its handler gives one."""
    found: dict[str, object] = {}
    for kind in sorted({job.kind for job in jobs}):
        handler: object = handlers.get(kind)
        if isinstance(handler, PreloadingHandler):
            found |= await handler.preload(tx, [job for job in jobs if job.kind == kind])
    return tuple(job._replace(preloaded=found[job.id]) if job.id in found else job for job in jobs)


def with_cached_inputs(
    handlers: Mapping[str, InputCaching], jobs: Sequence[Job], ended: Sequence[tuple[Job, object]]
) -> tuple[Job, ...]:
    """The jobs, each with its brief where its handler knows enough for one."""
    found: dict[str, object] = {}
    for kind, handler in handlers.items():
        own = [(job, outcome) for job, outcome in ended if job.kind == kind]
        found |= handler.preload_cached([job for job in jobs if job.kind == kind], own)
    return tuple(job._replace(preloaded=found.get(job.id)) for job in jobs)
