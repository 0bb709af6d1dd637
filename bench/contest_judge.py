"""Judges submissions of a contest in its benchmark, as a worker does when a program has ended.

``python -m bench.contest_judge`` is a process of its own: it gets the contest, then commands, as lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from itertools import count
from typing import Any

import uvloop

from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store import Database, open_database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Fence, JobResult
from adjudge.store.judging.commands import JOB_KIND_JUDGE, SubmissionCommands
from adjudge.store.judging.listeners import judge_run_listeners
from adjudge.store.judging.models import Judgement, NewSubmission
from bench.contest_fixture import ContestSeed

_WORKER = "bench"
_LEASE_MS = 600_000
_STEP = 7_919
"""A prime: submissions come from teams all over the scoreboard."""


class ContestJudge:
    """Submits, claims, and then judges one submission at a time."""

    def __init__(self, database: Database, seed: ContestSeed) -> None:
        self._database, self._seed = database, seed
        self._jobs = JobCommands({JOB_KIND_JUDGE: judge_run_listeners(CONTEST_LISTENER)})
        self._submissions = SubmissionCommands(self._jobs, listener=CONTEST_LISTENER)
        self._numbers = count()
        self._claimed: deque[Fence] = deque()

    async def prepare(self, count: int) -> int:
        """Submit and claim ``count`` submissions, each of another cell; return of how many participants."""
        new = [self._new(next(self._numbers)) for _ in range(count)]
        made = await self._database.transact(lambda tx: self._submissions.submit(tx, new))
        ids = [item.job_id for item in made]
        claimed = await self._database.transact(
            lambda tx: self._jobs.claim(tx, ids, worker=_WORKER, lease_ms=_LEASE_MS)
        )
        assert len(claimed.done) == count
        self._claimed += [Fence(job.id, job.attempt_id, _WORKER) for job in claimed.done]
        return len({item.participant_id for item in new})

    async def judge(self) -> int:
        """Accept the next submission; return when its transaction began, by the clock that all processes share."""
        result = JobResult(self._claimed.popleft(), typed_result=Judgement(Verdict.AC, time_ms=1, mem_kb=1))
        began_ns = time.monotonic_ns()
        await self._database.transact(lambda tx: self._jobs.finish_and_claim_next(tx, [result]))
        return began_ns

    def _new(self, number: int) -> NewSubmission:
        seed = self._seed
        problem = number % len(seed.problem_ids)
        return NewSubmission(
            new_id(),
            seed.user_id,
            seed.problem_ids[problem],
            seed.revision_ids[problem],
            "cpp",
            source_digest="0" * 64,
            source_bytes=1,
            contest_id=seed.contest_id,
            participant_id=seed.participant_ids[number * _STEP % len(seed.participant_ids)],
        )


async def carry_out(judge: ContestJudge) -> None:
    """Answer the commands on standard input: ``prepare`` with ``count``, and ``judge``."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        command: dict[str, Any] = json.loads(line)
        if command["do"] == "prepare":
            print(json.dumps({"participants": await judge.prepare(command["count"])}), flush=True)
        else:
            print(json.dumps({"began_ns": await judge.judge()}), flush=True)


def read_seed() -> ContestSeed:
    """The contest, from the first line of standard input."""
    return ContestSeed(**json.loads(sys.stdin.readline()))


async def main() -> None:
    seed = read_seed()
    async with open_database(seed.url, migrate=False, max_connections=2) as database:
        print("{}", flush=True)
        await carry_out(ContestJudge(database, seed))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
