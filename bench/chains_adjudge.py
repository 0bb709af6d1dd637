"""Our side of the chains' benchmark; roles as in ``ours``.

A run's number travels as its actor, so that the worker, which sees runs end, can mark them.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.domain.ids import new_id
from adjudge.executors.basic import NoopExecutor
from adjudge.executors.wakeups import WAIT_PROBES, fire_chain_finished
from adjudge.store import Database, Tx
from adjudge.store.chains import definitions
from adjudge.store.chains.models import JOB_KIND_NODE, ChainRunFinished, NewChainRun
from adjudge.store.jobs.commands import JobCommands
from adjudge.worker.handler import Handler
from adjudge.worker.handlers.node import NodeHandler
from bench import adjudge_roles
from bench.chains_progress import FIRST, document, start_on_command
from bench.queue_progress import SharedProgress


class MarkingNoop(NoopExecutor):
    """Our ``noop``, with a mark where a run's first node runs."""

    def __init__(self, board: SharedProgress) -> None:
        self._board = board

    async def execute(self, context: NodeContext) -> NodeResult:
        if context.node_id == FIRST:
            self._board.started(int(context.actor))
        return await super().execute(context)


def marking_engine(board: SharedProgress) -> ChainEngine:
    """The engine as every role has it, which marks a run once its end is committed, and not before."""

    async def mark(tx: Tx, end: ChainRunFinished) -> None:
        number = int(end.started_by or -1)
        tx.on_commit(lambda: board.done(number))

    return ChainEngine(probes=WAIT_PROBES, on_run_ended=[fire_chain_finished, mark])


@asynccontextmanager
async def work(database: Database, board: SharedProgress) -> AsyncIterator[tuple[JobCommands, Mapping[str, Handler]]]:
    engine = marking_engine(board)
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as folder:
        blobs = DirectoryBlobStore(Path(folder))
        yield (
            JobCommands({JOB_KIND_NODE: engine.job_listener}),
            {JOB_KIND_NODE: NodeHandler(database, blobs, {NoopExecutor.type: MarkingNoop(board)}, engine.dags)},
        )


async def submitter(database: Database, board: SharedProgress) -> None:
    """Defines a chain of a shape when it is first asked for, and starts it."""
    engine, known = ChainEngine(), dict[tuple[str, int], str]()

    async def start(shape: str, number: int, size: int) -> None:
        if (shape, size) not in known:
            dag = document(shape, size)
            name = f"{shape}-{size}-{new_id()}"
            made = await database.transact(lambda tx: definitions.create(tx, name=name, dag=dag, actor="bench"))
            known[shape, size] = made.id
            board.committed(number)  # what defining took is no part of starting
        wanted = NewChainRun(known[shape, size], {}, actor=str(number))
        await database.transact(lambda tx: engine.start(tx, wanted))

    await start_on_command(board, start)


if __name__ == "__main__":
    adjudge_roles.main(adjudge_roles.RoleSpec("bench-chains", work, submitter))
