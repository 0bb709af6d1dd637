"""Runs in arq's own environment: ``worker`` or ``submitter``, on Redis.

arq finds work by polling, every half second as it comes. That alone would be its figure, so here it polls every 20 ms.
Results are not kept. There is no database and no transaction: what Redis loses is lost.
"""

# mypy: ignore-errors
# (it imports a package of another environment)

import asyncio
import sys
from pathlib import Path

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from bench.queue_progress import CONCURRENCY, SharedProgress, send_line, submit_on_command

POLL_SEC = 0.02


async def main(role: str, board_path: str, url: str) -> None:
    board, settings = SharedProgress(Path(board_path)), RedisSettings.from_dsn(url)

    async def noop(_: dict, n: int) -> None:
        board.started(n)
        board.done(n)

    async def ready(_: dict) -> None:
        send_line("ready")

    if role == "worker":
        worker = Worker(
            [func(noop, name="noop", keep_result=0)],
            redis_settings=settings,
            max_jobs=CONCURRENCY,
            poll_delay=POLL_SEC,
            on_startup=ready,
            handle_signals=False,
        )
        await worker.async_run()
        return
    pool = await create_pool(settings)

    async def submit(numbers: list[int]) -> None:
        await asyncio.gather(*(pool.enqueue_job("noop", number) for number in numbers))

    await submit_on_command(board, submit)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
