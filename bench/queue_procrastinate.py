"""Runs in procrastinate's own environment: ``worker`` or ``submitter``, on PostgreSQL.

As it comes: LISTEN/NOTIFY on, finished jobs kept. Jobs are submitted with its batch call. A job is fetched by a query
of its own and ended by another that checks its status, not who ends it.
"""

# mypy: ignore-errors
# (it imports a package of another environment)

import asyncio
import sys
from pathlib import Path

import procrastinate

from bench.queue_progress import CONCURRENCY, SharedProgress, send_line, submit_on_command


async def main(role: str, board_path: str, url: str) -> None:
    board = SharedProgress(Path(board_path))
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task(name="noop")
    async def noop(n: int) -> None:
        board.started(n)
        board.done(n)

    async def submit(numbers: list[int]) -> None:
        if len(numbers) == 1:
            await noop.defer_async(n=numbers[0])
        else:
            await noop.batch_defer_async(*({"n": number} for number in numbers))

    async with app.open_async():
        if role == "submitter":
            await submit_on_command(board, submit)
        else:
            await app.schema_manager.apply_schema_async()
            send_line("ready")
            await app.run_worker_async(concurrency=CONCURRENCY)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
