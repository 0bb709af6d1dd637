"""The parts of the drive, put together from settings: what every role is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.relay.patrol import Reconciler, Watchdog, patrol
from adjudge.relay.pump import Pump
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs import Jobs
from adjudge.store.submissions import JUDGE, JudgeRunOwner
from adjudge.stream import MemoryStream, Stream
from adjudge.stream.redis import RedisStream

_RECONCILE_MS = 5_000


def make_jobs(settings: Settings) -> Jobs:
    """Jobs, with everything that owns them."""
    return Jobs({JUDGE: JudgeRunOwner()}, policy=settings.retry.policy())


@asynccontextmanager
async def open_stream(settings: Settings) -> AsyncIterator[Stream]:
    """Redis where its address is given, else a stream of this process."""
    jobs, url = settings.jobs, settings.jobs.redis_url.reveal()
    stream: Stream
    if url:
        stream = RedisStream(
            url,
            environment=settings.server.environment,
            maxlen=jobs.stream_maxlen,
            payload_ttl_sec=jobs.payload_ttl_sec,
        )
    else:
        stream = MemoryStream(maxlen=jobs.stream_maxlen)
    try:
        yield stream
    finally:
        await stream.close()


async def schedule(settings: Settings, database: Database, stream: Stream, name: str) -> None:
    """Deliver the outbox and keep order, for ever: what the scheduler role does."""
    jobs = make_jobs(settings)
    watchdog, reconciler = Watchdog(database, jobs, name=name), Reconciler(database, jobs, stream, name=name)
    interval_ms = round(settings.jobs.reclaim_interval_sec * 1_000)
    async with asyncio.TaskGroup() as roles:
        roles.create_task(Pump(database, jobs, stream, name=name).run())
        roles.create_task(patrol(watchdog.tick, every_ms=interval_ms))
        roles.create_task(patrol(reconciler.tick, every_ms=_RECONCILE_MS))
