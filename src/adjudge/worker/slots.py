"""Slots: how much a worker runs at once, in all and of each limited thing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Languages


def parse_limits(text: str) -> dict[str, int]:
    """Read ``language:java=1, kind:node=4``; what is named twice counts as it was named last."""
    limits = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        thing, _, most = item.partition("=")
        if not most.strip().isdecimal():
            raise InvalidInput(f"worker.limits: {item!r} must look like language:java=1.", field="worker.limits")
        limits[thing.strip()] = int(most)
    return limits


def refuse_unknown(limits: Mapping[str, int], known: Mapping[str, Collection[str]]) -> None:
    """Refuse a limit of something that does not exist: it would limit nothing. ``known`` holds the names by kind."""
    for thing in limits:
        group, _, name = thing.partition(":")
        if name not in known.get(group, ()):
            names = ", ".join(sorted(known.get(group, ())))
            raise InvalidInput(f"worker.limits: there is no {thing!r}; known are {names}.", field="worker.limits")


def language_needs(languages: Languages, payload: Mapping[str, Any]) -> tuple[str, ...]:
    """What a job in a language takes of the limits: its own, and that of its family (C++17 is one of ``cpp``)."""
    name = payload.get("language")
    if not name:
        return ()
    return tuple(f"language:{limited}" for limited in languages.limit_names(name))


class Slots:
    """Counts what is in use. It is bookkeeping of this process alone: who may write is decided by the rows."""

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

        As many as work may be waiting to be written besides, so that slots do not stand idle during a commit, and no
        more, so that a database that is away does not let finished work pile up.
        """
        return min(self.total - self._used, 2 * self.total - self._held)

    @property
    def has_limits(self) -> bool:
        """Whether anything is limited: where nothing is, nobody need ask what a job uses."""
        return bool(self._limits)

    def are_limited(self, needs: tuple[str, ...]) -> bool:
        """Whether there is a limit for any of them."""
        return any(need in self._limits for need in needs)

    def has_capacity_for(self, needs: tuple[str, ...], wanted: Counter[str]) -> bool:
        """Whether none of the limited things it needs is in full use, with what is ``wanted`` besides."""
        return all(self._using[need] + wanted[need] < self._limits[need] for need in needs if need in self._limits)

    def can_reuse_slot_for(self, held: tuple[str, ...], needs: tuple[str, ...]) -> bool:
        """Whether a slot that is in use may go on to other work while another is free, within the same limits."""
        return self.free > 0 and all(need in held for need in needs if need in self._limits)

    def acquire(self, needs: tuple[str, ...]) -> None:
        """Begin to use a slot."""
        self._used += 1
        self._held += 1
        if needs:
            self._using.update(needs)

    def release(self, needs: tuple[str, ...]) -> None:
        """The work is done; its end has still to be written."""
        self._used -= 1
        if needs:
            self._using.subtract(needs)
        self._freed.set()

    def job_written(self) -> None:
        """The job's end is written: nothing of it is left here."""
        self._held -= 1
        self._freed.set()

    async def wait_free(self) -> None:
        """Wait until a slot is free."""
        while self.free <= 0:
            self._freed.clear()
            await self._freed.wait()
