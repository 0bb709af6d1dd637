"""Something to hear for the event streams of the API's benchmark: a few submissions are judged at a steady pace.

The same number with and without streams, so that what differs is the streams alone.
"""

from __future__ import annotations

import asyncio
import sys

import asyncpg
import uvloop

from adjudge.domain.verdict import Verdict
from adjudge.store.engine.postgres import PostgresDatabase
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Fence, JobResult
from adjudge.store.judging.commands import JOB_KIND_JUDGE, JudgeRunListener
from adjudge.store.judging.models import Judgement

EACH = 5
PAUSE_SEC = 0.05
WORKER = "referee"
_WAITING = "SELECT id FROM jobs WHERE status = 'pending' AND id > $1 ORDER BY id LIMIT $2"


async def main(url: str) -> None:
    database = await PostgresDatabase.open(url, max_connections=1)
    reader = await asyncpg.connect(url)
    jobs, last = JobCommands({JOB_KIND_JUDGE: JudgeRunListener()}), ""
    print("ready", flush=True)
    while True:
        ids = [row["id"] for row in await reader.fetch(_WAITING, last, EACH)]
        if ids:
            last = ids[-1]
            claimed = await database.transact(lambda tx, ids=ids: jobs.claim(tx, ids, worker=WORKER, lease_ms=60_000))  # type: ignore[misc]  # a default binds it
            ends = [
                JobResult(
                    Fence(job.id, job.attempt_id, WORKER), typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1)
                )
                for job in claimed.done
            ]
            await database.transact(lambda tx, ends=ends: jobs.finish_and_claim_next(tx, ends))  # type: ignore[misc]  # a default binds it
        await asyncio.sleep(PAUSE_SEC)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1]))
