"""The in-process stream of embedded mode and the simulator, with the semantics of the Redis driver.

Nothing is stored on disk. If the process dies, all messages are lost, as with a Redis without persistence, and the
reconciler publishes them again. State changes only between awaits, so cancelling a call leaves it consistent.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.priority import BANDS, band_of
from adjudge.stream.codec import check_identifiers_only
from adjudge.stream.driver import Message, MessageBody, MessageDefect, PublishResult
from adjudge.stream.fair_share import FairShare

_LOOKED_AT_PER_CLAIM: Final = 10
"""How many pending messages a scan may inspect per message that it may claim; as in Redis."""

EntryId = tuple[int, int]


@dataclass(slots=True)
class _Pending:
    consumer: str
    delivered_at_us: int
    deliveries: int


@dataclass(slots=True)
class _Band:
    entries: OrderedDict[EntryId, Message] = field(default_factory=OrderedDict)
    """Unacknowledged messages, oldest first."""
    waiting: deque[EntryId] = field(default_factory=deque)
    """Unread messages, oldest first; trimmed ones are skipped."""
    pending: dict[EntryId, _Pending] = field(default_factory=dict)
    """Read and not acknowledged, in the order of ids."""
    cursor: EntryId = (0, 0)
    last_id: EntryId = (0, 0)


class MemoryStream:
    """Messages of one process. ``now_us`` is the clock for idle times."""

    def __init__(self, *, maxlen: int = 200_000, now_us: Callable[[], int] | None = None) -> None:
        self._maxlen = maxlen
        self._now_us = now_us or (lambda: time.time_ns() // 1000)
        self._turns = FairShare()
        self._first_to_reclaim = 0
        self._arrival = asyncio.Event()
        self._bands = {band: _Band() for band in BANDS}

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        """Add messages; those with anything but identifiers are rejected."""
        published = [self._publish(hint) for hint in hints]
        self._announce()
        return published

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        """Read new messages; wait for the first one if there is none."""
        if limit < 1:
            return []
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while not (messages := self._take(consumer, limit)):
                    await self._arrival.wait()
        except TimeoutError:
            messages = self._take(consumer, limit)
        return messages

    async def ack(self, messages: Sequence[Message]) -> int:
        """Acknowledge messages; an entry that was trimmed meanwhile counts, as in Redis."""
        acknowledged = 0
        for message in messages:
            band, entry_id = self._bands[message.band], _parse(message.entry_id)
            if band.pending.pop(entry_id, None) is not None:
                acknowledged += 1
                band.entries.pop(entry_id, None)
        return acknowledged

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        """Claim idle messages, continuing where the last call stopped, with another band first each time."""
        first, self._first_to_reclaim = self._first_to_reclaim, (self._first_to_reclaim + 1) % len(BANDS)
        messages: list[Message] = []
        for number in (*BANDS[first:], *BANDS[:first]):
            if len(messages) < limit:
                messages += self._reclaim(number, consumer, idle_ms * 1000, limit - len(messages))
        return sorted(messages, key=lambda message: message.band)

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        """Those that are not acknowledged, trimmed or flushed."""
        return {
            (priority, entry_id)
            for priority, entry_id in entries
            if entry_id is not None and _parse(entry_id) in self._bands[band_of(priority)].entries
        }

    async def pending_counts(self) -> dict[int, int]:
        return {number: len(band.pending) for number, band in self._bands.items()}

    async def depths(self) -> dict[int, int]:
        return {number: len(band.entries) for number, band in self._bands.items()}

    async def close(self) -> None:
        """Nothing to close; the object stays usable."""

    def flush(self) -> None:
        """Delete everything, as a flushed Redis does. For tests and the simulator."""
        self._bands = {band: _Band(last_id=old.last_id) for band, old in self._bands.items()}

    def add_defective(self, band: int, problem: MessageDefect, job_id: str | None = None) -> str:
        """Add an unusable message. For tests and the simulator."""
        entry_id = self._append(band, None, problem, job_id)
        self._announce()
        return entry_id

    def _publish(self, hint: MessageBody) -> PublishResult:
        try:
            check_identifiers_only(hint)
        except InvalidInput as refused:
            return PublishResult(hint.job_id, None, refused.message, is_final=True)
        return PublishResult(hint.job_id, self._append(hint.band, hint, None, hint.job_id))

    def _append(self, number: int, hint: MessageBody | None, problem: MessageDefect | None, job_id: str | None) -> str:
        band, now_ms = self._bands[number], self._now_us() // 1000
        # Ids grow even if the clock stops or goes back.
        last_ms, sequence = band.last_id
        band.last_id = (now_ms, 0) if now_ms > last_ms else (last_ms, sequence + 1)
        entry_id = f"{band.last_id[0]}-{band.last_id[1]}"
        band.entries[band.last_id] = Message(entry_id, number, hint, problem, job_id, 1, now_ms)
        band.waiting.append(band.last_id)
        while len(band.entries) > self._maxlen:
            band.entries.popitem(last=False)
        return entry_id

    def _announce(self) -> None:
        """Wake all waiters: they hold the old event; later readers check first and wait for the new one."""
        self._arrival.set()
        self._arrival = asyncio.Event()

    def _take(self, consumer: str, limit: int) -> list[Message]:
        messages: list[Message] = []
        for number, places in self._turns.reserved_quota(limit).items():
            messages += self._deliver(number, consumer, places)
        for number in BANDS:
            messages += self._deliver(number, consumer, limit - len(messages))
        return sorted(messages, key=lambda message: message.band)

    def _deliver(self, number: int, consumer: str, places: int) -> list[Message]:
        band, messages = self._bands[number], list[Message]()
        while band.waiting and len(messages) < places:
            entry_id = band.waiting.popleft()
            message = band.entries.get(entry_id)
            if message is not None:
                band.pending[entry_id] = _Pending(consumer, self._now_us(), 1)
                messages.append(message)
        return messages

    def _reclaim(self, number: int, consumer: str, idle_us: int, limit: int) -> list[Message]:
        band, messages, now_us = self._bands[number], list[Message](), self._now_us()
        ahead = [entry_id for entry_id in band.pending if entry_id >= band.cursor]
        for looked_at, entry_id in enumerate(ahead):
            if len(messages) == limit or looked_at == limit * _LOOKED_AT_PER_CLAIM:
                band.cursor = entry_id
                return messages
            pending, message = band.pending[entry_id], band.entries.get(entry_id)
            if message is None:
                del band.pending[entry_id]
            elif now_us - pending.delivered_at_us >= idle_us:
                band.pending[entry_id] = _Pending(consumer, now_us, pending.deliveries + 1)
                messages.append(replace(message, delivery_count=pending.deliveries + 1))
        band.cursor = (0, 0)
        return messages


def _parse(entry_id: str) -> EntryId:
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence)
