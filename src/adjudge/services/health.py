"""Health checks of every component, for ``/health/ready`` and for operators.

Without the database or the file store no request can be answered: the server is not ready. Without the stream or a
worker submissions are accepted and judged later: that is reported, but the server stays ready.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from adjudge.blobs.driver import BlobStore, parse_digest
from adjudge.domain.errors import AdjudgeError, Unavailable
from adjudge.observe.logs import get_logger
from adjudge.registry.driver import ProcessRole, Registry
from adjudge.store import Database
from adjudge.store.engine.connect import ping
from adjudge.stream.driver import Stream

Check = Callable[[], Awaitable[None]]
"""Asks one component whether it is available; raises if it is not."""
DISPENSABLE: Final = frozenset({"stream", "workers"})
_TIMEOUT_SEC: Final = 2.0
_ANY_DIGEST: Final = "0" * 64

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """Health of one component."""

    name: str
    is_well: bool
    took_ms: float
    error: str | None = None

    @property
    def status(self) -> Literal["ok", "away"]:
        return "ok" if self.is_well else "away"


def component_checks(
    database: Database,
    *,
    blobs: BlobStore | None = None,
    stream: Stream | None = None,
    registry: Registry | None = None,
) -> Mapping[str, Check]:
    """The checks of the components that a process uses."""

    async def database_answers() -> None:
        await ping(database)

    async def blobs_answer(blobs: BlobStore) -> None:
        await blobs.exists(parse_digest(_ANY_DIGEST))

    async def stream_answers(stream: Stream) -> None:
        await stream.depths()

    async def a_worker_lives(registry: Registry) -> None:
        if not any(process.info.role is ProcessRole.WORKER for process in await registry.list()):
            raise Unavailable("No workers online.")

    checks: dict[str, Check] = {"database": database_answers}
    if blobs is not None:
        checks["blobs"] = partial(blobs_answer, blobs)
    if stream is not None:
        checks["stream"] = partial(stream_answers, stream)
    if registry is not None:
        checks["workers"] = partial(a_worker_lives, registry)
    return checks


async def check_components(checks: Mapping[str, Check]) -> list[ComponentHealth]:
    return list(await asyncio.gather(*(_check(name, check) for name, check in checks.items())))


async def _check(name: str, check: Check) -> ComponentHealth:
    started, error = time.perf_counter(), None
    try:
        async with asyncio.timeout(_TIMEOUT_SEC):
            await check()
    except Exception as failure:  # noqa: BLE001  # any error means that the component is unavailable
        error = failure.message if isinstance(failure, AdjudgeError) else type(failure).__name__
        log.warning("health_check_failed", check=name, error=error)
    return ComponentHealth(name, error is None, round((time.perf_counter() - started) * 1000, 1), error)
