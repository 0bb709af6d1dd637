"""Slots: how many jobs a worker runs at once, in total and for each limit, and how many it may start per second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adjudge.cache.token_buckets import TokenBuckets
from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Languages
from adjudge.observe import metrics
from adjudge.store.jobs.models import Fence, Job
from adjudge.stream.driver import Message
from adjudge.worker.handler import Handler

_RATE_KEY: Final = "worker-starts"


def parse_limits(text: str) -> dict[str, int]:
    """Parse ``language:java=1, kind:node=4``; of duplicates, the last one counts."""
    limits = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        thing, _, most = item.partition("=")
        if not most.strip().isdecimal():
            raise InvalidInput(f"worker.limits: {item!r} must look like language:java=1.", field="worker.limits")
        limits[thing.strip()] = int(most)
    return limits


def refuse_unknown(limits: Mapping[str, int], known: Mapping[str, Collection[str]]) -> None:
    """Reject a limit with an unknown name, which would limit nothing. ``known`` maps kinds to names."""
    for thing in limits:
        group, _, name = thing.partition(":")
        if name not in known.get(group, ()):
            names = ", ".join(sorted(known.get(group, ())))
            raise InvalidInput(f"worker.limits: there is no {thing!r}; known are {names}.", field="worker.limits")


def language_needs(languages: Languages, payload: Mapping[str, Any]) -> tuple[str, ...]:
    """The limit keys of a language: its own and that of its family (C++17 belongs to ``cpp``)."""
    name = payload.get("language")
    if not name:
        return ()
    return tuple(f"language:{limited}" for limited in languages.limit_names(name))


class Claim(NamedTuple):
    """A claimed job, which has a slot from before its claim was sent until its handler returns."""

    job: Job
    fence: Fence
    claimed_at: float
    """On the clock that measures leases, before the claim was sent."""
    needs: tuple[str, ...] = ()
    """The limits that its slot uses."""
    message: Message | None = None
    """The message that announced it; a follow-up job has none."""
    is_takeover: bool = False
    """Whether the message was left behind by another worker."""


class Reservation(NamedTuple):
    """Slots that are reserved for follow-up jobs while results are written."""

    slots: int = 0
    limits: Mapping[str, int] = {}
    """How many more jobs may use each limit."""


class Slots:
    """Counts slots in use, in this process only. The rows decide who may write."""

    def __init__(self, total: int, limits: Mapping[str, int] | None = None) -> None:
        self.total = total
        self._limits = dict(limits or {})
        self._used = 0
        self._unwritten = 0
        self._using: Counter[str] = Counter()
        self._freed = asyncio.Event()
        self._released = asyncio.Event()
        self._is_paused = False

    @property
    def is_paused(self) -> bool:
        """Whether no job may start."""
        return self._is_paused

    def set_paused(self, is_paused: bool) -> None:
        """Start no more jobs, or start jobs again; what runs goes on."""
        self._is_paused = is_paused
        self._wake()

    @property
    def free(self) -> int:
        """How many more jobs may start.

        As many results as there are slots may wait to be written, so that slots are not idle during a commit. No more,
        so that finished work does not accumulate while the database is unavailable.
        """
        if self._is_paused:
            return 0
        return min(self.total - self._used, 2 * self.total - self._unwritten)

    @property
    def has_limits(self) -> bool:
        """Whether any limit is set; otherwise limit keys are not needed."""
        return bool(self._limits)

    def needs(self, handler: Handler, kind: str, payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limited keys that a job uses."""
        if not self._limits:
            return ()
        return tuple(key for key in (f"kind:{kind}", *handler.limit_keys(payload)) if key in self._limits)

    def fits(self, needs: Iterable[str]) -> bool:
        """Whether no limit that a job needs is reached."""
        return all(self._using[need] < self._limits[need] for need in needs if need in self._limits)

    def acquire(self, needs: Iterable[str]) -> None:
        """Use a slot, before the claim of its job is sent."""
        self._used += 1
        self._unwritten += 1
        self._using.update(needs)

    def release(self, needs: Iterable[str]) -> None:
        """Free a slot, because the handler has returned; the result is still to be written."""
        self._used -= 1
        self._using.subtract(needs)
        self._wake()

    def record_written(self) -> None:
        """Record that a result is written, or that nothing is left to write."""
        self._unwritten -= 1
        self._wake()

    def cancel(self, needs: Iterable[str]) -> None:
        """Free a slot whose job was not claimed."""
        self._unwritten -= 1
        self.release(needs)

    def reserve(self, most: int) -> Reservation:
        """Reserve the free slots, at most ``most``, and what is left of the limits, until ``settle``."""
        left = {key: max(0, limit - self._using[key]) for key, limit in self._limits.items()}
        reserved = Reservation(max(0, min(self.free, most)), left)
        self._used += reserved.slots
        self._unwritten += reserved.slots
        self._using.update(reserved.limits)
        return reserved

    def settle(self, reserved: Reservation, used: Sequence[tuple[str, ...]]) -> None:
        """Return what is unused of a reservation; ``used`` holds the needs of each job that was claimed."""
        unused = reserved.slots - len(used)
        self._used -= unused
        self._unwritten -= unused
        self._using.subtract(reserved.limits)
        for needs in used:
            self._using.update(needs)
        if unused:
            self._wake()

    def _wake(self) -> None:
        self._freed.set()
        self._released.set()

    async def wait_free(self) -> None:
        """Wait until a slot is free."""
        while self.free <= 0:
            self._freed.clear()
            await self._freed.wait()

    async def wait_released(self) -> None:
        """Wait until a slot was freed since the last call."""
        await self._released.wait()
        self._released.clear()


class StartRateLimiter:
    """Permits to start jobs, over all workers that share the token bucket. A claimed job uses one; others use none.

    A worker acquires permits before it reads, so that no message waits at a worker that may not start its job. Unused
    permits are kept, at most as many as it has slots. Reclaimed jobs are charged afterwards.
    """

    def __init__(self, buckets: TokenBuckets, *, rate_per_sec: float) -> None:
        self._buckets = buckets
        self._rate_per_sec = rate_per_sec
        self._burst = max(1.0, rate_per_sec)
        self._in_hand = 0

    async def acquire(self, wanted: int, *, wait_sec: float) -> int:
        """How many of ``wanted`` jobs may start; waits at most ``wait_sec`` for the first permit."""
        while self._in_hand < 1:
            refused_sec = await self._take(1)
            if refused_sec > 0:
                metrics.WORKER_THROTTLED.inc()
                await asyncio.sleep(min(refused_sec, wait_sec))
                if refused_sec > wait_sec:
                    return 0
        missing = min(wanted - self._in_hand, int(self._burst))
        if missing > 0:
            await self._take(missing)
        return min(wanted, self._in_hand)

    @property
    def permits(self) -> int:
        """How many jobs may start without another permit."""
        return self._in_hand

    def consume(self) -> None:
        """Use a permit, because a job has started."""
        self._in_hand -= 1

    async def _take(self, amount: int) -> float:
        wait_sec = await self._buckets.take(
            _RATE_KEY, rate_per_sec=self._rate_per_sec, burst=self._burst, amount=float(amount)
        )
        if wait_sec == 0.0:
            self._in_hand += amount
        return wait_sec
