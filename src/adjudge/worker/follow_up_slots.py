"""WorkerFollowUpSlots on: which of the jobs that follow from ended ones their worker runs itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from adjudge.store.jobs.models import Job, NewJob
from adjudge.worker.handler import Handler
from adjudge.worker.slots import Slots


class Claimant(Protocol):
    """Who claims, and for how long."""

    @property
    def name(self) -> str:
        """The worker's name."""
        ...

    @property
    def lease_ms(self) -> int:
        """How long a claim holds unless it is renewed."""
        ...


class WorkerFollowUpSlots:
    """The slots of jobs that end together, and what may follow in them: ``job_values.Room``.

    An ended job's slot goes to one that follows from it, while another is free, so that nobody waits for it. Light jobs
    may use every slot that is free or becomes free: they are over before a message about them could be read. Those
    that ``worker.limits`` names use an ended job's place alone: nothing keeps another for them during the transaction.
    """

    def __init__(
        self,
        wanted: Claimant,
        slots: Slots,
        handlers: Mapping[str, Handler],
        is_instant: Callable[[NewJob], bool],
        held: Mapping[str, tuple[str, ...] | None],
    ) -> None:
        self.worker = wanted.name
        self.lease_ms = wanted.lease_ms
        self._slots = slots
        self._handlers = handlers
        self._is_instant = is_instant
        self._held = {job_id: needs for job_id, needs in held.items() if needs is not None}
        self._left = slots.free + len(self._held) if held else 0

    def reserve(self, ended: Job, job: NewJob) -> bool:
        """Whether the worker runs ``job``, should it be created because ``ended`` ends."""
        handler = self._handlers.get(job.kind)
        if handler is None or job.delay_ms or self._left <= 0:
            return False
        needs = (f"kind:{job.kind}", *handler.limit_keys(job.payload)) if self._slots.has_limits else ()
        held = self._held.get(ended.id)
        if held is not None and self._slots.can_reuse_slot_for(held, needs):
            del self._held[ended.id]
        elif not self._takes_besides(job, needs):
            return False
        self._left -= 1
        return True

    def _takes_besides(self, job: NewJob, needs: tuple[str, ...]) -> bool:
        """A light job in a slot that is free; not one that is limited: the reader may take the same place meanwhile."""
        return self._is_instant(job) and not self._slots.are_limited(needs)
