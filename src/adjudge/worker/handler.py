"""What a kind of job is to a worker: a handler, registered under the kind's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from adjudge.domain.states import JobStatus
from adjudge.store.driver import Tx
from adjudge.store.job_values import Job


@dataclass(frozen=True, slots=True)
class Completion:
    """How a job went. ``outcome`` is for its owner, who writes it in the transaction that ends the job."""

    status: JobStatus = JobStatus.SUCCEEDED
    result: Mapping[str, Any] | None = None
    outcome: object = None
    leads_on: bool = False
    """Whether jobs may follow from it, of which its worker could run one at once."""


class Handler(Protocol):
    """Runs jobs of one kind.

    It may be canceled at any await, when the lease is lost or nobody wants the job any more; it then stops what it
    started and returns. What it raises is classified in one place: ours and passing is tried again, the rest is final.
    """

    async def run(self, job: Job) -> Completion:
        """Do the work."""
        ...

    def needs(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the limited things it uses (``language:cpp``), known before the job is claimed."""
        ...


@runtime_checkable
class Briefing(Protocol):
    """A handler that reads what its jobs need to know in the transaction that claims them, for many at once."""

    async def brief(self, tx: Tx, jobs: Sequence[Job]) -> Mapping[str, object]:
        """What jobs need to know, by their id. One that is left out finds out by itself."""
        ...


async def briefed(tx: Tx, handlers: Mapping[str, Handler], jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs, which this transaction has claimed, each with its brief where its handler gives one."""
    found: dict[str, object] = {}
    for kind in sorted({job.kind for job in jobs}):
        handler: object = handlers.get(kind)
        if isinstance(handler, Briefing):
            found |= await handler.brief(tx, [job for job in jobs if job.kind == kind])
    return tuple(replace(job, brief=found[job.id]) if job.id in found else job for job in jobs)
