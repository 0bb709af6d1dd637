"""Runs in DBOS' own environment: everything in one process, on PostgreSQL, as it is meant to be embedded.

A line is a workflow that awaits one step after another. A fan is a workflow that awaits its first step, gathers the
others and awaits the last: the quickest way it has, and one that stays within the process that runs the workflow.
"""

# mypy: ignore-errors
# (it imports a package of another environment)

import asyncio
import sys
from pathlib import Path

from dbos import DBOS

from bench.chains_progress import FAN, start_on_command
from bench.queue_progress import SharedProgress


async def main(_role: str, board_path: str, url: str) -> None:
    board = SharedProgress(Path(board_path))
    DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "WARNING"})

    @DBOS.step()
    async def noop(number: int) -> None:
        if number >= 0:
            board.started(number)

    @DBOS.workflow()
    async def line(number: int, size: int) -> None:
        await noop(number)
        for _ in range(size - 1):
            await noop(-1)

    @DBOS.workflow()
    async def fan(number: int, size: int) -> None:
        await noop(number)
        await asyncio.gather(*(noop(-1) for _ in range(size - 2)))
        await noop(-1)

    DBOS.launch()

    async def start(shape: str, number: int, size: int) -> None:
        handle = await DBOS.start_workflow_async(fan if shape == FAN else line, number, size)
        await handle.get_result()
        board.done(number)

    await start_on_command(board, start)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
