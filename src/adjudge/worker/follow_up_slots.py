"""Decides which follow-up jobs the finishing worker runs itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from adjudge.store.jobs.models import Job, NewJob
from adjudge.worker.handler import Handler
from adjudge.worker.slots import Slots


class Claimant(Protocol):
    """The worker that claims, and the duration of its leases."""

    @property
    def name(self) -> str: ...

    @property
    def lease_ms(self) -> int:
        """The duration of a lease without renewal."""
        ...


class WorkerFollowUpSlots:
    """The slots that are available for follow-up jobs of results written together (``FollowUpSlots``).

    The slot of a finished job is given to one of its follow-up jobs. Instant jobs may use every slot that is free or
    becomes free: they finish before a message about them could be read. Jobs limited by ``worker.limits`` may use only
    the slot of the finished job, because nothing reserves another one for them during the transaction.
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
        """Whether the worker runs ``job`` if it is created because ``ended`` finishes."""
        handler = self._handlers.get(job.kind)
        if handler is None or job.delay_ms or self._left <= 0:
            return False
        needs = (f"kind:{job.kind}", *handler.limit_keys(job.payload)) if self._slots.has_limits else ()
        held = self._held.get(ended.id)
        if held is not None and self._slots.can_reuse_slot_for(held, needs):
            del self._held[ended.id]
        elif not self._may_use_free_slot(job, needs):
            return False
        self._left -= 1
        return True

    def _may_use_free_slot(self, job: NewJob, needs: tuple[str, ...]) -> bool:
        """Whether the job may use another free slot: instant and not limited (the reader may use the same limit)."""
        return self._is_instant(job) and not self._slots.are_limited(needs)
