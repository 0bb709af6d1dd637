"""At start: whether the Redis namespace of the settings belongs to this installation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial

from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.ops.installation import installation_id

_log = get_logger(__name__)


@asynccontextmanager
async def namespace_taken(settings: Settings, database: Database) -> AsyncIterator[None]:
    """Refuse to run in the Redis namespace of another installation.

    A process also starts while Redis is away. Then it asks until Redis answers, and a refusal ends the block.
    """
    url = settings.jobs.redis_url.reveal()
    if not url:
        yield
        return
    from adjudge.stream.namespace import take_namespace  # noqa: PLC0415  # only where it is chosen

    take = partial(
        take_namespace,
        url,
        environment=settings.server.environment,
        installation_id=await installation_id(database),
        timeout_sec=settings.jobs.redis_timeout_sec,
    )
    outage = Outage(_log, "namespace_check_retrying")
    try:
        await take()
    except Unavailable as error:
        async with _beside(_take_later(take, outage, outage.failed(error))):
            yield
    else:
        yield


async def _take_later(take: Callable[[], Awaitable[None]], outage: Outage, pause_sec: float) -> None:
    while True:
        await asyncio.sleep(pause_sec)
        try:
            await take()
        except Unavailable as error:
            pause_sec = outage.failed(error)
        else:
            outage.over()
            return


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine beside the block; its failure ends the block and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(work, name="namespace-check")
            yield
            running.cancel()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
