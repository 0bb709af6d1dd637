"""What every serving process needs: signal handling, registration, the health server, garbage collector tuning."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from adjudge import __version__
from adjudge.cli.wiring.drivers import open_registry
from adjudge.domain.errors import InvalidInput
from adjudge.observe.health_server import SILENCE_SEC, LoopHeartbeat, serve_health
from adjudge.registry import ProcessInfo, ProcessRole
from adjudge.registry.registration import keep_role_registered
from adjudge.settings import Settings
from adjudge.store import Database

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_HANDLED_SIGNALS: Final = 2
_GC_THRESHOLDS: Final = (50_000, 20, 20)
"""A batch of submissions creates tens of thousands of objects without reference cycles, a page thousands. Python's
default, a collection every 700 objects, would find nothing."""


def tune_gc() -> None:
    """Freeze the objects created at start-up, so that garbage collections skip them.

    A full collection traverses all modules, classes and routes. That takes tens of milliseconds, during which no job
    starts and no request is answered.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def drain_on_signals(drain: Callable[[], None]) -> None:
    """Call ``drain`` on the first two SIGINT or SIGTERM; a third has its default effect and ends the process."""
    loop, received = asyncio.get_running_loop(), 0

    def handle() -> None:
        nonlocal received
        received += 1
        drain()
        if received == _HANDLED_SIGNALS:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, handle)


@asynccontextmanager
async def registered(settings: Settings, database: Database, role: ProcessRole) -> AsyncIterator[None]:
    """Register this process as an API server or a scheduler while the block runs."""
    host, pid = socket.gethostname(), os.getpid()
    info = ProcessInfo(f"{role}-{host}-{pid}", host, pid, __version__, role=role)
    async with (
        open_registry(settings, database) as registry,
        keep_role_registered(registry, info, interval_sec=settings.jobs.heartbeat_sec),
    ):
        yield


@asynccontextmanager
async def open_health_server(settings: Settings, *pulses: LoopHeartbeat) -> AsyncIterator[None]:
    """Serve metrics and liveness while the block runs, if a port is set."""
    if not settings.server.metrics_port:
        yield
        return
    port = settings.server.metrics_port
    async with AsyncExitStack() as opened:
        try:
            await opened.enter_async_context(serve_health(port, pulses, silence_sec=_silence_sec(settings)))
        except OSError as error:
            raise InvalidInput(
                f"server.metrics_port: cannot listen on 127.0.0.1:{port}: "
                f"{error.strerror or error}. Each worker and scheduler on a machine needs its own "
                "port.",
                field="server.metrics_port",
            ) from error
        yield


def _silence_sec(settings: Settings) -> float:
    """How long a loop may make no progress before it counts as dead.

    A loop that waits for an unreachable database or Redis is alive: it retries after its timeout, and a restart would
    not help.
    """
    return SILENCE_SEC + settings.database.timeout_sec + settings.jobs.redis_timeout_sec
