"""Commits jobs for ever and says so through a pipe: the child that the crash test kills."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.engine.sqlite import SqliteDatabase
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Fence, JobResult, NewJob


async def commit_for_ever(database: SqliteDatabase, jobs: JobCommands, lane: int, report: Connection) -> None:
    while True:
        batch = [NewJob(id=new_id(), kind="node") for _ in range(3)]

        async def create(tx: Tx, batch: list[NewJob] = batch) -> None:
            ids = await jobs.enqueue(tx, batch)
            await jobs.claim(tx, ids[:2], worker=f"lane-{lane}", lease_ms=60_000)

        async def end(tx: Tx, batch: list[NewJob] = batch) -> None:
            await jobs.finish_and_claim_next(tx, [JobResult(Fence(batch[0].id, 1, f"lane-{lane}"))])

        await database.transact(create)
        report.send([("created", job.id) for job in batch])
        await database.transact(end)
        report.send([("finished", batch[0].id)])


async def commit(path: Path, report: Connection) -> None:
    database = SqliteDatabase(path, synchronous="FULL")
    jobs = JobCommands({})
    await asyncio.gather(*(commit_for_ever(database, jobs, lane, report) for lane in range(4)))


def main(path: Path, report: Connection) -> None:
    asyncio.run(commit(path, report))
