"""Slots: how many jobs a worker runs at once, in total and for each limit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Languages


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


class Slots:
    """Counts slots in use, in this process only. The rows decide who may write."""

    def __init__(self, total: int, limits: Mapping[str, int] | None = None) -> None:
        self.total = total
        self._limits = dict(limits or {})
        self._used = 0
        self._held = 0
        self._using: Counter[str] = Counter()
        self._freed = asyncio.Event()

    @property
    def free(self) -> int:
        """How many more jobs may start.

        As many results as there are slots may wait to be written, so that slots are not idle during a commit. No more,
        so that finished work does not accumulate while the database is unavailable.
        """
        return min(self.total - self._used, 2 * self.total - self._held)

    @property
    def has_limits(self) -> bool:
        """Whether any limit is set; otherwise limit keys are not needed."""
        return bool(self._limits)

    def are_limited(self, needs: tuple[str, ...]) -> bool:
        return any(need in self._limits for need in needs)

    def has_capacity_for(self, needs: tuple[str, ...], wanted: Counter[str]) -> bool:
        """Whether no limit that the job needs is reached, counting ``wanted`` as in use."""
        return all(self._using[need] + wanted[need] < self._limits[need] for need in needs if need in self._limits)

    def can_reuse_slot_for(self, held: tuple[str, ...], needs: tuple[str, ...]) -> bool:
        """Whether a slot in use may be reused for another job: another slot is free, and the limits are the same."""
        return self.free > 0 and all(need in held for need in needs if need in self._limits)

    def acquire(self, needs: tuple[str, ...]) -> None:
        self._used += 1
        self._held += 1
        if needs:
            self._using.update(needs)

    def release(self, needs: tuple[str, ...]) -> None:
        """Free a slot; the result is still to be written."""
        self._used -= 1
        if needs:
            self._using.subtract(needs)
        self._freed.set()

    def job_written(self) -> None:
        self._held -= 1
        self._freed.set()

    async def wait_free(self) -> None:
        while self.free <= 0:
            self._freed.clear()
            await self._freed.wait()
