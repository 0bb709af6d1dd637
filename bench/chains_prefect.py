"""Runs in Prefect's own environment: a server of its own beside a process that runs flows, on PostgreSQL.

A line is a flow that calls one task after another, each with what the last one returned. A fan maps a task over a list
on a pool of as many threads as everybody's worker has slots.
"""

# mypy: ignore-errors
# (it imports a package of another environment)

import asyncio
import importlib
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from bench.chains_progress import FAN, start_on_command
from bench.queue_progress import CONCURRENCY, SharedProgress


async def main(_role: str, board_path: str, url: str) -> None:
    board = SharedProgress(Path(board_path))
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as home:
        os.environ |= {
            "PREFECT_HOME": home,
            "PREFECT_API_DATABASE_CONNECTION_URL": url.replace("postgresql://", "postgresql+asyncpg://"),
            "PREFECT_LOGGING_LEVEL": "ERROR",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        }
        prefect = importlib.import_module("prefect")  # not before: it reads its settings as it is imported
        await asyncio.to_thread(prefect.flow(_nothing, name="warm-up"))  # starts the server
        flows = _flows(prefect, board)

        async def start(shape: str, number: int, size: int) -> None:
            await asyncio.to_thread(flows[shape], number, size)
            board.done(number)

        await start_on_command(board, start)


def _nothing() -> None: ...


def _flows(prefect, board: SharedProgress) -> dict:
    @prefect.task
    def noop(number: int, _after=None) -> int:
        if number >= 0:
            board.started(number)
        return -1

    @prefect.flow
    def line(number: int, size: int) -> None:
        for _ in range(size):
            number = noop(number)

    @prefect.flow(task_runner=prefect.task_runners.ThreadPoolTaskRunner(max_workers=CONCURRENCY))
    def fan(number: int, size: int) -> None:
        noop(number)
        done = noop.map([-1] * (size - 2))
        noop(-1, done)

    return {"line": line, FAN: fan}


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except Exception:  # noqa: BLE001 — its server holds our output open: nobody would learn that we ended
        traceback.print_exc()
        os.killpg(0, signal.SIGKILL)
