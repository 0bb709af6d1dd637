"""What every serving process needs: signal handling, registration, the health server, garbage collector tuning."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from adjudge import __version__
from adjudge import settings as settings_source
from adjudge.cli.wiring.drivers import open_registry
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.observe import logs, tracing
from adjudge.observe.health_server import SILENCE_SEC, HealthSources, LoopHeartbeat, serve_health
from adjudge.observe.metrics_access import MetricsAccess
from adjudge.observe.otlp import open_otlp_exporter
from adjudge.registry import ProcessInfo, ProcessRole
from adjudge.registry.registration import keep_role_registered
from adjudge.services.health import Check, check_components
from adjudge.services.system_metrics import SystemMetrics
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.stream import Stream

_log = logs.get_logger(__name__)
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


def reload_log_level_on_hangup() -> None:
    """Read the settings again on SIGHUP and apply ``log.level``; an invalid file changes nothing."""

    def reload() -> None:
        try:
            level = settings_source.load().log.level
        except AdjudgeError as error:
            _log.error("log_level_reload_failed", error=error.message)
            return
        before = logs.set_level(level)
        _log.warning("log_level_changed", level=level, before=before)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)


@asynccontextmanager
async def open_tracing(settings: Settings, role: str) -> AsyncIterator[None]:
    """Export the spans of this process while the block runs, if a receiver is set."""
    traces = settings.traces
    if not traces.endpoint:
        yield
        return
    resource = {
        "service.name": f"adjudge-{role}",
        "service.version": __version__,
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        "deployment.environment.name": settings.server.environment,
    }
    try:
        exporter = open_otlp_exporter(traces.endpoint, resource)
    except ImportError as error:
        raise InvalidInput(
            "traces.endpoint: the SDK of OpenTelemetry is not installed; install adjudge[otel].",
            field="traces.endpoint",
        ) from error
    tracing.configure(exporter.export, ratio=traces.sample_ratio)
    try:
        yield
    finally:
        tracing.configure(None)
        await asyncio.to_thread(exporter.close)


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
async def open_system_metrics(settings: Settings, database: Database, stream: Stream) -> AsyncIterator[SystemMetrics]:
    """The metrics of the system, for a process that has no registry of its own."""
    async with open_registry(settings, database) as registry:
        system = SystemMetrics(database, stream, registry)
        try:
            yield system
        finally:
            await system.close()


@asynccontextmanager
async def open_health_server(
    settings: Settings,
    render: Callable[[], Awaitable[bytes]],
    checks: Mapping[str, Check],
    *loops: LoopHeartbeat,
    is_draining: Callable[[], bool] = lambda: False,
) -> AsyncIterator[None]:
    """Serve metrics, liveness and readiness while the block runs, if a port is set."""
    server = settings.server
    if not server.metrics_port:
        yield
        return

    async def find_obstacles() -> list[str]:
        found = ["draining: takes no more jobs"] if is_draining() else []
        return found + [f"{item.name}: {item.error}" for item in await check_components(checks) if not item.is_well]

    sources = HealthSources(loops, _silence_sec(settings), render, find_obstacles)
    host, port = server.metrics_host, server.metrics_port
    async with AsyncExitStack() as opened:
        try:
            await opened.enter_async_context(serve_health(port, sources, host=host, access=metrics_access(settings)))
        except OSError as error:
            raise InvalidInput(
                f"server.metrics_port: cannot listen on {host}:{port}: "
                f"{error.strerror or error}. Each process on a machine needs its own port.",
                field="server.metrics_port",
            ) from error
        yield


def metrics_access(settings: Settings) -> MetricsAccess:
    return MetricsAccess.of(settings.server.metrics_networks, settings.server.metrics_token.reveal())


def _silence_sec(settings: Settings) -> float:
    """How long a loop may make no progress before it counts as dead.

    A loop that waits for an unreachable database or Redis is alive: it retries after its timeout, and a restart would
    not help.
    """
    return SILENCE_SEC + settings.database.timeout_sec + settings.jobs.redis_timeout_sec
