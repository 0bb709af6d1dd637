"""Keeps messages whose jobs cannot start yet, because a limit of this worker is reached.

They stay pending in the stream, unacknowledged: if this worker dies or takes long, others reclaim them after the usual
idle time. When a slot becomes free, the first message that fits is claimed. The number of parked messages is limited.
Further ones are returned to the outbox with a delay that grows with their number, so that a backlog is not read again
and again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.stream.driver import Message
from adjudge.worker.slots import Slots

PARKED_MAX: Final = 256
_DEFERRED_PER_SEC: Final = 50
"""Maximum rate, per second, at which returned messages may be delivered again."""
_DELAY_MS: Final = (1_000, 30_000)
_REASON: Final = "worker_limit"

_log = get_logger(__name__)


class Parking:
    """Parked messages of one worker, ordered by priority band, then by arrival."""

    def __init__(
        self,
        database: Database,
        jobs: JobCommands,
        slots: Slots,
        needs_of: Callable[[Message], tuple[str, ...]],
        clock: Callable[[], float],
        *,
        actor: str,
    ) -> None:
        self._database, self._jobs, self._slots, self._needs_of, self._clock = database, jobs, slots, needs_of, clock
        self._actor = actor
        self._waiting: dict[str, Message] = {}
        self._due_back: deque[float] = deque()
        self._is_told = False

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._waiting

    def fitting(self, messages: Mapping[str, Message]) -> dict[str, Message]:
        """Those of the messages that fit now, in addition to the parked ones."""
        wanted: Counter[str] = Counter()
        return {
            job_id: message
            for job_id, message in messages.items()
            if job_id not in self._waiting and self._fits(message, wanted)
        }

    async def admit(self, messages: Mapping[str, Message]) -> tuple[dict[str, Message], list[Message]]:
        """Add messages; return those that can be claimed now, and those returned to the outbox, to be acknowledged."""
        for job_id, message in messages.items():
            self._waiting.setdefault(job_id, message)
        free, wanted, ready = self._slots.free, Counter[str](), dict[str, Message]()
        for job_id, message in sorted(self._waiting.items(), key=lambda item: item[1].band):
            if len(ready) < free and self._fits(message, wanted):
                ready[job_id] = message
        for job_id in ready:
            del self._waiting[job_id]
        self._tell()
        return ready, await self._defer(list(self._waiting)[PARKED_MAX:])

    def _fits(self, message: Message, wanted: Counter[str]) -> bool:
        needs = self._needs_of(message)
        if not self._slots.has_capacity_for(needs, wanted):
            return False
        wanted.update(needs)
        return True

    def _tell(self) -> None:
        """Log once that jobs wait for a limit, not every time they are checked."""
        if bool(self._waiting) != self._is_told:
            self._is_told = bool(self._waiting)
            _log.info("worker_limit_reached" if self._is_told else "worker_limit_left", worker=self._actor)

    async def _defer(self, job_ids: Sequence[str]) -> list[Message]:
        if not job_ids:
            return []
        now = self._clock()
        while self._due_back and self._due_back[0] <= now:
            self._due_back.popleft()
        least, most = _DELAY_MS
        delay_ms = min(most, max(least, (len(self._due_back) + len(job_ids)) * 1_000 // _DEFERRED_PER_SEC))
        self._due_back.extend([now + delay_ms / 1_000] * len(job_ids))
        return await self._release(job_ids, delay_ms)

    async def release_all(self) -> list[Message]:
        """Return all parked messages to the outbox; return those to be acknowledged.

        If the database is unavailable, nothing is returned: other workers reclaim the messages when they are idle.
        """
        try:
            return await self._release(list(self._waiting), 0) if self._waiting else []
        except Unavailable as error:
            _log.warning("parked_messages_left", reason=error.code, error=error.message)
            return []

    async def _release(self, job_ids: Sequence[str], delay_ms: int) -> list[Message]:
        given = {job_id: self._waiting.pop(job_id) for job_id in job_ids}
        done = await self._database.transact(
            lambda tx: self._jobs.defer(tx, job_ids, delay_ms=delay_ms, actor=self._actor, reason=_REASON)
        )
        return [given[job.id] for job in done]
