"""Runs in Celery's own environment: ``worker`` or ``submitter``, on Redis.

One worker with the ``solo`` pool, which runs tasks in the worker's own process, one after another: for tasks that do
nothing it is the fastest of Celery's pools. What workers tell each other is off, results are not kept, and a message is
acknowledged before its task runs, which is Celery's default: a worker that dies loses what it had taken.
"""

# mypy: ignore-errors
# (it imports a package of another environment)

import asyncio
import sys
from pathlib import Path

from celery import Celery
from celery.signals import worker_ready

from bench.queue_progress import SharedProgress, send_line, submit_on_command

QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


def main(role: str, board_path: str, url: str) -> None:
    board = SharedProgress(Path(board_path))
    app = Celery("bench", broker=url)
    app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False, worker_redirect_stdouts=False)

    @app.task(name="noop")
    def noop(n: int) -> None:
        board.started(n)
        board.done(n)

    async def submit(numbers: list[int]) -> None:
        for number in numbers:
            noop.apply_async((number,))

    if role == "submitter":
        asyncio.run(submit_on_command(board, submit))
        return
    worker_ready.connect(lambda **_: send_line("ready"), weak=False)
    app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR", *QUIET])


if __name__ == "__main__":
    main(*sys.argv[1:])
