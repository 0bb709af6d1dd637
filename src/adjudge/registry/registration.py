"""Registers a process in the registry and keeps its entry alive. It decides nothing about jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.registry.driver import ProcessHealth, ProcessInfo, Registry

Look = Callable[[], Coroutine[Any, Any, ProcessInfo]]

_log = get_logger(__name__)


@asynccontextmanager
async def keep_registered(
    registry: Registry, info: ProcessInfo, look: Look, health: Callable[[], ProcessHealth], *, interval_sec: float
) -> AsyncIterator[None]:
    """Register while the block runs; an unavailable registry affects the listing only.

    ``look`` detects the capabilities of the worker. That takes a while, and jobs do not wait for it. Until then the
    worker has the health of ``info`` (starting), so that undetected languages are not taken for missing ones.
    """
    keeping = asyncio.create_task(_keep(registry, info, look, health, interval_sec), name="presence")
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        with suppress(Unavailable):
            await registry.deregister(info.name)


@asynccontextmanager
async def keep_role_registered(registry: Registry, info: ProcessInfo, *, interval_sec: float) -> AsyncIterator[None]:
    """Register an API server or a scheduler, whose capabilities need not be detected, while the block runs."""
    ready = replace(info, health=ProcessHealth.READY)

    async def look() -> ProcessInfo:
        return ready

    async with keep_registered(registry, ready, look, lambda: ProcessHealth.READY, interval_sec=interval_sec):
        yield


async def _keep(
    registry: Registry, info: ProcessInfo, look: Look, health: Callable[[], ProcessHealth], interval_sec: float
) -> None:
    outage = Outage(_log, "registration_renewal_failed", longest_sec=interval_sec)
    looking = asyncio.create_task(look())
    said: ProcessInfo | None = None
    try:
        while True:
            has_looked, pause_sec = looking.done(), interval_sec
            known = looking.result() if has_looked else info
            try:
                if said != known:
                    await registry.register(known)
                    said = known
                if not await registry.keep_alive(info.name, health=health() if has_looked else info.health):
                    said = None
                outage.over()
            except Unavailable as error:
                pause_sec = outage.failed(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_sec):
                    await (asyncio.Event().wait() if has_looked else asyncio.shield(looking))
    finally:
        looking.cancel()
