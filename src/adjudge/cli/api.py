"""``adjudge api``: runs one HTTP server, without worker and scheduler. Any number may run."""

from __future__ import annotations

import socket

import click

from adjudge.cli.namespace import namespace_taken
from adjudge.cli.wiring.api_server import open_services, run_server, serve_http
from adjudge.cli.wiring.drivers import open_blobs, open_served, open_stream
from adjudge.settings import Settings
from adjudge.store.accounts import users


@click.command("api")
@click.option("--host", help="Address to bind.")
@click.option("--port", type=int, help="Port to bind; 0 selects a free port.")
def command(host: str | None, port: int | None) -> None:
    """Run an API server."""
    run_server(_serve, host=host, port=port)


async def _serve(settings: Settings, listener: socket.socket) -> None:
    async with (
        open_served(settings) as database,
        namespace_taken(settings, database),
        open_stream(settings) as stream,
        open_blobs(settings) as blobs,
        open_services(settings, database, stream, blobs) as services,
    ):
        has_users = await database.read(users.any_exist)
        notes = [] if has_users else ["no users yet; create one: adjudge user add NAME --role admin"]
        await serve_http(services, database, listener, notes)
