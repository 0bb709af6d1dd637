"""What a kind of job is to a worker: a handler, registered under the kind's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from adjudge.domain.states import JobStatus
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
