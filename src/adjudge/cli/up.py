"""``adjudge up``: everything in one process, on SQLite unless told otherwise."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import click
import uvicorn
import uvloop

from adjudge import settings as settings_source
from adjudge.api.app import API_ROOT, OPENAPI_PATH, create_app
from adjudge.blobs.driver import Blobs
from adjudge.cli.parts import open_blobs, open_stream, open_worker, schedule
from adjudge.domain.errors import InvalidInput
from adjudge.observe import logs
from adjudge.sandbox.doctor import CheckState, Diagnosis, examine
from adjudge.settings import Settings
from adjudge.store import Database, open_database
from adjudge.store.health import ping
from adjudge.stream import Stream, consumer_name

_GRACE_SEC: Final = 10
_EXAMPLE: Final = Path("examples/problems/multiples")
"""What a newcomer in a checkout can judge at once."""
_BACKLOG: Final = 2048


@click.command("up")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
def command(host: str | None, port: int | None) -> None:
    """Start Adjudge on this machine."""
    settings = settings_source.load({"server.host": host, "server.port": port})
    logs.configure(settings.log.level, settings.log.format)
    with (
        closing(listen(settings.server.host, settings.server.port)) as listener,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(settings, listener))


async def _serve(settings: Settings, listener: socket.socket) -> None:
    """All roles in one process: they share the database and the stream, and know nothing of each other."""
    async with (
        open_database(settings.database.url.reveal()) as database,
        open_stream(settings) as stream,
        open_blobs(settings) as blobs,
        asyncio.TaskGroup() as roles,
    ):
        name = f"up-{consumer_name(worker_id=settings.worker.name)}"
        scheduler = roles.create_task(schedule(settings, database, stream, name))
        worker = roles.create_task(_judge(settings, database, stream, blobs, name))
        await _serve_http(settings, listener, database)
        scheduler.cancel()
        worker.cancel()


async def _serve_http(settings: Settings, listener: socket.socket, database: Database) -> None:
    async def database_answers() -> None:
        await ping(database)

    app = create_app(checks={"database": database_answers})
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # the envelope logs requests, with their ids
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SEC,
    )
    _announce(settings, listener)
    await Server(config).serve([listener])


async def _judge(settings: Settings, database: Database, stream: Stream, blobs: Blobs, name: str) -> None:
    """Judge where untrusted code may run; where it may not, say what to do, and let everything else work."""
    diagnosis = await examine()
    _announce_sandbox(diagnosis)
    if not diagnosis.may_run_untrusted:
        return
    async with open_worker(settings, database, stream, blobs, name) as worker:
        running = asyncio.create_task(worker.run())
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.drain()
            worker.drain()  # the process is ending: hand back what runs, at once
            await running
            raise


class Server(uvicorn.Server):
    """Uvicorn, ending with exit code 0 when it was asked to end; a second signal ends it at once."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let a signal end the server, and nothing more: uvicorn would raise it again afterwards."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def listen(host: str, port: int) -> socket.socket:
    """Take the port before anything else starts, or say who is in the way."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InvalidInput(
            f"server.port: cannot listen on {host} port {port}: {error.strerror or error}. "
            "Choose another with --port (or PORT=… make up); 0 picks a free one.",
            field="server.port",
        ) from error
    return listener


def _announce(settings: Settings, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    base = f"http://{shown}:{port}"
    click.echo(f"Adjudge is up at {base}")
    click.echo(f"  truth    {settings.database.url}")
    click.echo(f"  health   {base}{API_ROOT}/health/ready")
    click.echo(f"  API      {base}{OPENAPI_PATH}")
    click.echo(f"  figures  {base}/metrics")
    if _EXAMPLE.is_dir():
        click.echo(
            f"  try      .venv/bin/adjudge judge {_EXAMPLE}/submissions/accepted/formula.cpp --problem {_EXAMPLE}"
        )
    for note in settings.strangers:
        click.echo(f"  note     {note}")
    click.echo("Ctrl-C stops it.")


def _announce_sandbox(diagnosis: Diagnosis) -> None:
    """Start anyway where untrusted code may not run, and say what to do about it."""
    if diagnosis.may_run_untrusted:
        click.echo("  sandbox  ready: submissions are judged here")
        return
    click.echo("  sandbox  NOT ready: nothing can be judged here until this is fixed (adjudge doctor says more)")
    for check in diagnosis.checks:
        if check.essential and check.state is CheckState.MISSING:
            click.echo(f"           {check.name}: {check.found}; {check.fix}")
