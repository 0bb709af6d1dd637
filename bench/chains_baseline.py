"""The baseline of a chain line: two fenced transactions per step on a raw driver, and nothing else.

One claims a job, the other finishes it and inserts the next one. They are the statements of the queue, with a
commit each that is flushed; there is no chain, no node, no outbox and no stream. Addresses as for ``chains_ours``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncpg
import uvloop

from adjudge.domain.ids import new_id
from adjudge.store.engine.postgres import SESSION
from adjudge.store.jobs import statements as sql
from adjudge.store.jobs.models import Fence, JobResult, NewJob, finish_row, insert_row
from bench import raw_statements as raw
from bench.chains_progress import start_on_command
from bench.queue_baseline import LEASE_US, WORKER, BarePostgres, BareSqlite, Call, RawDriver
from bench.queue_progress import SharedProgress


def _insertable() -> tuple[object, ...]:
    return insert_row(NewJob(id=new_id(), kind="raw"))


async def line(bare: RawDriver, board: SharedProgress, number: int, size: int) -> None:
    """Take ``size`` steps, one after another."""
    row = _insertable()
    await bare.transact((raw.INSERT, [row], {}))
    for step in range(size):
        (claimed,) = await bare.transact((sql.CLAIM, [(row[0],)], {"worker": WORKER, "lease_us": LEASE_US}))
        if step == 0:
            board.started(number)
        fence = Fence(claimed[0]["id"], claimed[0]["attempt_id"], WORKER)
        row = _insertable()
        finish: Call = (raw.FINISH, [finish_row(JobResult(fence))[:8]], {})
        await (bare.transact(finish, (raw.INSERT, [row], {})) if step < size - 1 else bare.transact(finish))
    board.done(number)


async def main(_role: str, board_path: str, url: str) -> None:
    board = SharedProgress(Path(board_path))
    bare: RawDriver
    if url.startswith("sqlite:"):
        bare = BareSqlite(url.removeprefix("sqlite:///"))
    else:
        bare = BarePostgres(await asyncpg.connect(url, server_settings=SESSION))

    async def start(_shape: str, number: int, size: int) -> None:
        await line(bare, board, number, size)

    await start_on_command(board, start)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
