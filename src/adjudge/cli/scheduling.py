"""Delivering jobs and keeping order: what the scheduler role does, and what others do where it is switched off."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from adjudge.chains.patrol import ChainPatrol, PatrolSettings
from adjudge.chains.triggers import TriggerScheduler
from adjudge.cli.chaining import make_engine, make_jobs, run_starter
from adjudge.domain.errors import InvalidInput
from adjudge.observe.door import SILENCE_SEC, Pulse, open_door
from adjudge.relay.direct import delivering
from adjudge.relay.patrol import Census, Reconciler, Watchdog, patrol
from adjudge.relay.pump import Pump
from adjudge.relay.retention import Retention
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs import Jobs
from adjudge.stream import Stream

_RECONCILE_MS = 5_000
_AHEAD = 4_000
_RETENTION_MS = 60_000
_CHAINS_MS = 500
"""How exactly timers of chains are kept."""


@asynccontextmanager
async def delivered_directly(settings: Settings, database: Database, stream: Stream) -> AsyncIterator[None]:
    """Where the outbox is switched off, this process delivers jobs itself while the block lasts."""
    if settings.jobs.outbox_enabled:
        yield
        return
    name = f"direct-{socket.gethostname()}-{os.getpid()}"
    async with delivering(Pump(database, Jobs({}), stream, name=name, ahead=_ahead(settings))):
        yield


@asynccontextmanager
async def watched(settings: Settings, *pulses: Pulse) -> AsyncIterator[None]:
    """Serve figures and liveness while the block lasts, where a port is set."""
    if not settings.server.metrics_port:
        yield
        return
    port = settings.server.metrics_port
    async with AsyncExitStack() as opened:
        try:
            await opened.enter_async_context(open_door(port, pulses, silence_sec=_silence_sec(settings)))
        except OSError as error:
            raise InvalidInput(
                f"server.metrics_port: cannot listen on 127.0.0.1:{port}: "
                f"{error.strerror or error}. Each worker and scheduler on a machine needs its own "
                "port.",
                field="server.metrics_port",
            ) from error
        yield


def _silence_sec(settings: Settings) -> float:
    """How long a loop may make no progress until it counts as dead.

    One that waits for a database or a Redis that does not answer is alive: it gives up at its time limit and tries
    again. Restarting it would not help.
    """
    return SILENCE_SEC + settings.database.timeout_sec + settings.jobs.redis_timeout_sec


async def schedule(
    settings: Settings, database: Database, stream: Stream, name: str, pulse: Pulse | None = None
) -> None:
    """Deliver the outbox and keep order, for ever: what the scheduler role does."""
    engine = make_engine(settings)
    jobs = make_jobs(settings, engine)
    watchdog, reconciler = Watchdog(database, jobs, name=name), Reconciler(database, jobs, stream, name=name)
    interval_ms = round(settings.jobs.reclaim_interval_sec * 1_000)
    async with asyncio.TaskGroup() as roles:
        roles.create_task(Pump(database, jobs, stream, name=name, pulse=pulse, ahead=_ahead(settings)).run())
        roles.create_task(patrol(watchdog.tick, every_ms=interval_ms))
        roles.create_task(patrol(reconciler.tick, every_ms=_RECONCILE_MS))
        roles.create_task(patrol(Census(database, stream).tick, every_ms=_RECONCILE_MS))
        retention = Retention(database, deliveries_ms=settings.webhooks.keep_sec * 1_000)
        roles.create_task(patrol(retention.tick, every_ms=_RETENTION_MS))
        chains = ChainPatrol(database, jobs, engine, name=name, settings=_chain_rounds(settings))
        roles.create_task(patrol(chains.tick, every_ms=_CHAINS_MS))
        roles.create_task(TriggerScheduler(database, run_starter(engine), name=name).run())


def _ahead(settings: Settings) -> int:
    """How much of a band to announce ahead of the workers: far from where the stream drops its oldest messages."""
    return min(_AHEAD, settings.jobs.stream_maxlen // 2)


def _chain_rounds(settings: Settings) -> PatrolSettings:
    chains = settings.chains
    keep_ms = round(chains.keep_days * 86_400_000) or None
    return PatrolSettings(stop_grace_ms=round(chains.stop_grace_sec * 1_000), keep_ms=keep_ms)
