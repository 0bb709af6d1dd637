"""``adjudge scheduler``: runs one scheduler. Any number may run; they coordinate through the database."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress

import click
import uvloop

from adjudge import settings as settings_source
from adjudge.cli.namespace import namespace_taken
from adjudge.cli.wiring.drivers import open_served, open_stream
from adjudge.cli.wiring.process import (
    open_health_server,
    open_system_metrics,
    open_tracing,
    reload_log_level_on_hangup,
    tune_gc,
)
from adjudge.cli.wiring.scheduler import run_scheduler
from adjudge.domain.errors import InvalidInput
from adjudge.observe import logs
from adjudge.observe.health_server import LoopHeartbeat
from adjudge.relay.housekeeping import record_metrics
from adjudge.services.health import component_checks
from adjudge.settings import Settings


@click.command(name="scheduler")
def command() -> None:
    """Run a scheduler: dispatch, recovery and chain triggers."""
    settings = settings_source.load()
    logs.configure(settings.log.level, settings.log.format)
    if not settings.jobs.redis_url.reveal():
        raise InvalidInput(
            "jobs.redis_url: a separate scheduler requires Redis; set "
            "ADJUDGE_REDIS_URL=redis://HOST:PORT/0, or run all roles in one process with "
            "`adjudge up`.",
            field="jobs.redis_url",
        )
    with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings))


async def _run(settings: Settings) -> None:
    task = asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel if task else lambda: None)
    name = f"scheduler-{socket.gethostname()}-{os.getpid()}"
    reload_log_level_on_hangup()
    heartbeat = LoopHeartbeat("dispatcher")
    async with (
        open_served(settings) as database,
        namespace_taken(settings, database),
        open_stream(settings) as stream,
        open_tracing(settings, "scheduler"),
        open_system_metrics(settings, database, stream) as system,
        open_health_server(settings, system.render, component_checks(database, stream=stream), heartbeat),
        record_metrics(database, name, system),
    ):
        click.echo(f"{name} started, database {settings.database.url}")
        tune_gc()
        await run_scheduler(settings, database, stream, name, heartbeat)
