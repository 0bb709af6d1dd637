"""An API server and a judge in one process, as ``adjudge up`` has them: SQLite notifies within a process only."""

from __future__ import annotations

import asyncio
import socket

from adjudge.cli.wiring.api_server import open_services, run_server, serve_http
from adjudge.cli.wiring.drivers import open_blobs, open_served, open_stream
from adjudge.settings import Settings
from bench.contest_judge import ContestJudge, carry_out, read_seed


async def _serve(settings: Settings, listener: socket.socket) -> None:
    seed = read_seed()
    async with (
        open_served(settings) as database,
        open_stream(settings) as stream,
        open_blobs(settings) as blobs,
        open_services(settings, database, stream, blobs) as services,
    ):
        commands = asyncio.create_task(carry_out(ContestJudge(database, seed)))
        await serve_http(services, database, listener)
        commands.cancel()


if __name__ == "__main__":
    run_server(_serve, port=0)
