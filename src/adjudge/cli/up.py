"""``adjudge up``: runs all roles in one process, by default on SQLite."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

import click

from adjudge.blobs.driver import BlobStore
from adjudge.cli.namespace import namespace_taken
from adjudge.cli.wiring.api_server import open_services, run_server, serve_http
from adjudge.cli.wiring.drivers import open_blobs, open_served, open_stream
from adjudge.cli.wiring.scheduler import run_scheduler
from adjudge.cli.wiring.worker import open_worker
from adjudge.sandbox.doctor import DoctorReport, HostCheck, run_checks
from adjudge.services.users import UserService
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.stream import Stream, consumer_name


@click.command("up")
@click.option("--host", help="Address to bind.")
@click.option("--port", type=int, help="Port to bind; 0 selects a free port.")
def command(host: str | None, port: int | None) -> None:
    """Run all roles in one process (API, scheduler, worker)."""
    run_server(_serve, host=host, port=port)


async def _serve(settings: Settings, listener: socket.socket) -> None:
    """Run all roles in one process; they share database and stream only."""
    async with (
        open_served(settings) as database,
        namespace_taken(settings, database),
        open_stream(settings) as stream,
        open_blobs(settings) as blobs,
        open_services(settings, database, stream, blobs) as services,
        asyncio.TaskGroup() as roles,
    ):
        name = f"up-{consumer_name(worker_id=settings.worker.name)}"
        notes = await _create_first_admin(services.users)
        scheduler = roles.create_task(run_scheduler(settings, database, stream, name))
        worker = roles.create_task(_run_worker(settings, database, stream, blobs, name))
        await serve_http(services, database, listener, notes)
        scheduler.cancel()
        worker.cancel()


async def _create_first_admin(users: UserService) -> list[str]:
    """Create the first admin of an empty database; the one-time password is printed, never logged."""
    made = await users.create_first_admin()
    if made is None:
        return []
    return [
        (
            f"log in as {made.user.name} with the one-time password {made.one_time_password} (shown once; "
            "you will be asked to change it)"
        ),
        f"a token for programs: {_command()} user token {made.user.name}",
    ]


def _command() -> str:
    """The command as typed by the user; in a checkout it is in ``.venv``."""
    local = Path(".venv/bin/adjudge")
    return str(local) if local.exists() else "adjudge"


async def _run_worker(settings: Settings, database: Database, stream: Stream, blobs: BlobStore, name: str) -> None:
    """Run a worker if untrusted code is safe here; otherwise print how to fix it and run the other roles only."""
    diagnosis = await run_checks()
    obstacles = diagnosis.obstacles(allow_without_cgroup=settings.judge.allow_without_cgroup)
    _print_sandbox_status(diagnosis, obstacles)
    if obstacles:
        return
    async with open_worker(settings, database, stream, blobs, name) as worker:
        running = asyncio.create_task(worker.run())
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.drain()
            worker.drain()  # the process is ending: release running jobs immediately
            await running
            raise


def _print_sandbox_status(diagnosis: DoctorReport, obstacles: Sequence[HostCheck]) -> None:
    """Print whether this machine judges, and how to fix it if not."""
    if diagnosis.may_run_untrusted:
        click.echo("  sandbox  ready")
        return
    if not obstacles:
        click.echo(
            "  sandbox  ready, but NOT SAFE for untrusted programs: without a cgroup their memory and CPU time are"
        )
        click.echo("           not limited (judge.allow_without_cgroup is set)")
        return
    click.echo("  sandbox  NOT ready; nothing is judged on this machine (see adjudge doctor)")
    for check in obstacles:
        click.echo(f"           {check.name}: {check.observed}; {check.fix}")
