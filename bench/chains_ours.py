"""Our side of the chains' benchmark; roles as in ``ours``.

A run's number travels as its actor, so that the worker, which sees runs end, can mark them.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from adjudge.blobs.directory import DirectoryBlobs
from adjudge.chains.awaiting import PROBES, run_ended
from adjudge.chains.engine import Engine
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.chains.executors.basic import Noop
from adjudge.domain.ids import new_id
from adjudge.store import Database, Tx, chains
from adjudge.store.chain_values import NODE, NewRun, RunEnded
from adjudge.store.jobs import Jobs
from adjudge.worker.handler import Handler
from adjudge.worker.node import NodeHandler
from bench import ours
from bench.chains_board import FIRST, document, start_on_command
from bench.drive_board import Board


class Marked(Noop):
    """Our ``noop``, with a mark where a run's first node runs."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def execute(self, context: NodeContext) -> NodeResult:
        if context.node_id == FIRST:
            self._board.started(int(context.actor))
        return await super().execute(context)


def marking_engine(board: Board) -> Engine:
    """The engine as every role has it, which marks a run once its end is committed, and not before."""

    async def mark(tx: Tx, end: RunEnded) -> None:
        number = int(end.started_by or -1)
        tx.on_commit(lambda: board.done(number))

    return Engine(probes=PROBES, on_run_ended=[run_ended, mark])


@asynccontextmanager
async def work(database: Database, board: Board) -> AsyncIterator[tuple[Jobs, Mapping[str, Handler]]]:
    engine = marking_engine(board)
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as folder:
        blobs = DirectoryBlobs(Path(folder))
        yield (
            Jobs({NODE: engine.owner}),
            {NODE: NodeHandler(database, blobs, {Noop.type: Marked(board)}, engine.dags)},
        )


async def submitter(database: Database, board: Board) -> None:
    """Defines a chain of a shape when it is first asked for, and starts it."""
    engine, known = Engine(), dict[tuple[str, int], str]()

    async def start(shape: str, number: int, size: int) -> None:
        if (shape, size) not in known:
            dag = document(shape, size)
            name = f"{shape}-{size}-{new_id()}"
            made = await database.transact(lambda tx: chains.create(tx, name=name, dag=dag, actor="bench"))
            known[shape, size] = made.id
            board.committed(number)  # what defining took is no part of starting
        wanted = NewRun(known[shape, size], {}, actor=str(number))
        await database.transact(lambda tx: engine.start(tx, wanted))

    await start_on_command(board, start)


if __name__ == "__main__":
    ours.main(ours.House("bench-chains", work, submitter))
