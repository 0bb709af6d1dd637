"""``adjudge worker``: runs one worker. Any number may run, on any number of machines."""

from __future__ import annotations

import asyncio

import click
import uvloop

from adjudge import settings as settings_source
from adjudge.cli.namespace import namespace_taken
from adjudge.cli.wiring.drivers import open_blobs, open_served, open_stream
from adjudge.cli.wiring.process import (
    drain_on_signals,
    open_health_server,
    open_system_metrics,
    open_tracing,
    reload_log_level_on_hangup,
    tune_gc,
)
from adjudge.cli.wiring.scheduler import inline_dispatch
from adjudge.cli.wiring.worker import open_worker
from adjudge.domain.errors import InvalidInput
from adjudge.observe import logs
from adjudge.relay.housekeeping import record_metrics
from adjudge.services.health import component_checks
from adjudge.settings import Settings
from adjudge.stream import consumer_name


@click.command(name="worker")
@click.option("--slots", type=click.IntRange(1, 1024), help="Number of concurrent jobs. Default: number of cores.")
@click.option("--name", help="Worker name. Default: hostname-pid.")
def command(slots: int | None, name: str | None) -> None:
    """Run a worker: judges submissions and executes chain nodes.

    SIGTERM drains: running jobs finish, or are released after the drain timeout. A second SIGTERM releases them
    immediately. A third ends the process even if the database does not respond.
    """
    settings = settings_source.load({"worker.slots": slots, "worker.name": name})
    logs.configure(settings.log.level, settings.log.format)
    if not settings.jobs.redis_url.reveal():
        raise InvalidInput(
            "jobs.redis_url: a separate worker requires Redis; set "
            "ADJUDGE_REDIS_URL=redis://HOST:PORT/0, or run all roles in one process with "
            "`adjudge up`.",
            field="jobs.redis_url",
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings))


async def _run(settings: Settings) -> None:
    name = consumer_name(worker_id=settings.worker.name)
    async with (
        open_served(settings) as database,
        namespace_taken(settings, database),
        open_stream(settings) as stream,
        open_blobs(settings) as blobs,
        inline_dispatch(settings, database, stream),
        open_worker(settings, database, stream, blobs, name) as worker,
        open_tracing(settings, "worker"),
        open_system_metrics(settings, database, stream) as system,
        open_health_server(
            settings,
            system.render,
            component_checks(database, blobs=blobs, stream=stream),
            worker.heartbeat,
            is_draining=lambda: worker.is_draining,
        ),
        record_metrics(database, name, system),
    ):
        drain_on_signals(worker.drain)
        reload_log_level_on_hangup()
        click.echo(f"{name} started, database {settings.database.url}")
        tune_gc()
        await worker.run()
