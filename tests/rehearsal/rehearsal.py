"""Two simulated contests on one distributed installation: one undisturbed, one whose worker is killed in the middle.

Both have the same plan. The times at which the server receives submissions differ between any two runs, so penalties in
real minutes are not comparable. Compared are: the verdict of every planned submission; for every team and problem of
the server's scoreboard attempts, pending and solved; and the scoreboard by planned times with ranks and penalties. The
stored scoreboard of each contest, real times included, must equal its recomputation from the submissions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from adjudge.cli.simulation_report import SimulationSummary, planned_verdicts, summarize
from adjudge.cli.simulation_run import SimulationOptions, SimulationProgress, run_simulation
from adjudge.contests.simulation import SimulationPlan
from adjudge.contests.simulation_results import PlannedRow, planned_rows
from adjudge.domain.verdict import Verdict
from adjudge.store import Database, open_database
from adjudge.store.contests import queries
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.engine.statement import Row, Statement
from tests.support.chain_fixture import zip_folder
from tests.support.installation import AdjudgeProcess, Installation, start_distributed
from tests.support.problem_packages import EXAMPLES
from tests.support.servers import RedisServer, S3Server
from tests.support.stored_scoreboards import recomputed_board, stored_board

_BUCKET = "rehearsal"
_POLL_SEC = 0.02
_FINAL = """
SELECT s.id AS id, s.status AS status, s.verdict AS verdict,
       (SELECT count(*) FROM jobs j WHERE j.submission_id = s.id) AS jobs,
       (SELECT count(*) FROM jobs j WHERE j.submission_id = s.id AND j.status = 'succeeded') AS succeeded,
       (SELECT max(j.attempt_id) FROM jobs j WHERE j.submission_id = s.id) AS attempts,
       (SELECT count(*) FROM submission_status_log l WHERE l.submission_id = s.id AND l.verdict IS NOT NULL) AS verdicts
FROM submissions s WHERE s.contest_id = :contest_id
"""
Say = Callable[[str], None]


@dataclass(frozen=True)
class RehearsalResult:
    """One simulated contest and what the database has of it."""

    summary: SimulationSummary
    verdicts: list[Verdict | None]
    rows: list[PlannedRow]
    cells: dict[str, list[tuple[int, int, bool]]]
    """Team → attempts, pending, solved of the server's scoreboard."""
    repeated: int
    """Jobs that needed a second attempt."""
    faults: list[str]
    """Everything that is wrong."""


@dataclass
class Rehearsal:
    """An installation with several workers, and the contests on it."""

    installation: Installation
    database_url: str
    say: Say
    workers: list[AdjudgeProcess] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)

    def start_worker(self) -> AdjudgeProcess:
        """Start a worker; it is stopped with the rehearsal."""
        name = f"rehearsal-{len(self.workers) + 1}"
        worker = AdjudgeProcess(["worker", "--name", name], self.installation.environment, self.installation.folder)
        self.stack.callback(worker.stop)
        self.workers.append(worker)
        worker.wait_for("started, database")
        return worker

    def publish(self, problems: Sequence[str]) -> None:
        """Publish example problems."""
        for slug in problems:
            self.installation.publish(zip_folder(EXAMPLES / slug), slug=slug)

    def run(self, contest: str, plan: SimulationPlan, duration_sec: float, *, kill: bool = False) -> RehearsalResult:
        """Simulate one contest; with ``kill`` a worker dies when half of the submissions are accepted."""
        return asyncio.run(self._run(SimulationOptions(contest, plan, duration_sec), kill=kill))

    async def _run(self, options: SimulationOptions, *, kill: bool) -> RehearsalResult:
        token = self.installation.admin.headers["Authorization"].removeprefix("Bearer ")
        progress = SimulationProgress()
        async with open_database(self.database_url, migrate=False, max_connections=2) as database:
            reports = asyncio.create_task(self._report(options, progress))
            try:
                work: list[Awaitable[None]] = [run_simulation(self.installation.url, token, options, progress)]
                if kill:
                    work.append(self._kill_worker(database, options, progress))
                await asyncio.gather(*work)
            finally:
                reports.cancel()
            return await _examine(database, options, progress)

    async def _report(self, options: SimulationOptions, progress: SimulationProgress) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(15)
            done = f"{len(progress.accepted)} accepted, {len(progress.ended)} judged of {len(options.plan.submissions)}"
            self.say(f"  {options.contest} {time.monotonic() - began:.0f} s: {done}")

    async def _kill_worker(self, database: Database, options: SimulationOptions, progress: SimulationProgress) -> None:
        """Kill the first worker while it judges a submission, and start another one."""
        victim, name = self.workers[-2], f"rehearsal-{len(self.workers) - 1}"
        while len(progress.accepted) < len(options.plan.submissions) // 2:
            await asyncio.sleep(_POLL_SEC)
        while not (held := await _leases(database, name)):
            await asyncio.sleep(_POLL_SEC)
        victim.kill()
        self.say(f"  killed {name}, which held {held} jobs, after {len(progress.accepted)} submissions")
        await asyncio.to_thread(self.start_worker)


async def _leases(database: Database, name: str) -> int:
    found = await _rows(database, "SELECT lease_owner FROM jobs WHERE status = 'running'")
    return sum(name in str(row["lease_owner"]) for row in found)


async def _rows(database: Database, sql: str, **parameters: object) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(Statement(sql, "Asked by a test.", sql), **parameters))


async def _examine(database: Database, options: SimulationOptions, progress: SimulationProgress) -> RehearsalResult:
    """Compare what the server returned with what the database has."""
    summary, verdicts = summarize(options, progress), planned_verdicts(options, progress)
    contest = await database.read(lambda tx: queries.find_contest(tx, options.contest))
    found = await _rows(database, _FINAL, contest_id=contest.id)
    faults = list(summary.problems)
    if {row["id"] for row in found} != set(progress.accepted.values()):
        faults.append("the submissions in the database are not those that were accepted")
    faults += [
        f"submission {dict(row)}: expected one job that succeeded and one verdict"
        for row in found
        if (row["jobs"], row["succeeded"], row["verdicts"]) != (1, 1, 1)
    ]
    for view in (JURY, PUBLIC):
        stored = await database.read(partial(stored_board, contest_id=contest.id, view=view))
        if stored != await database.read(partial(recomputed_board, contest_id=contest.id, view=view)):
            faults.append(f"the stored {view} scoreboard differs from its recomputation")
    assert progress.scoreboard is not None
    cells = {
        row.name.rpartition("-")[2]: [(cell.attempts, cell.pending, cell.is_solved) for cell in row.cells]
        for row in progress.scoreboard.rows
    }
    repeated = sum(int(row["attempts"]) > 1 for row in found)
    return RehearsalResult(summary, verdicts, planned_rows(options.plan, verdicts), cells, repeated, faults)


def compare(undisturbed: RehearsalResult, disturbed: RehearsalResult) -> list[str]:
    """What differs between two contests with the same plan, and everything that is wrong with either."""
    faults = [*undisturbed.faults, *disturbed.faults]
    different = sum(a is not b for a, b in zip(undisturbed.verdicts, disturbed.verdicts, strict=True))
    if different:
        faults.append(f"{different} submissions have another verdict")
    if undisturbed.cells != disturbed.cells:
        names = [name for name, cells in undisturbed.cells.items() if disturbed.cells.get(name) != cells]
        faults.append(f"the scoreboards differ in the rows of {len(names)} teams: {', '.join(names[:5])}")
    if undisturbed.rows != disturbed.rows:
        faults.append("the scoreboards by planned times differ")
    if not disturbed.repeated:
        faults.append("the killed worker held no job, so nothing was shown")
    return faults


@contextmanager
def open_rehearsal(
    folder: Path,
    database_url: str,
    redis: RedisServer,
    s3: S3Server | None,
    say: Say = lambda _: None,
    *,
    workers: int = 2,
    **settings: object,
) -> Iterator[Rehearsal]:
    """A distributed installation with ``workers`` workers, which can be killed; files in S3 if there is one."""
    if s3 is not None:
        s3.create_bucket(_BUCKET)
        settings |= {
            "s3_bucket": _BUCKET,
            "s3_endpoint": s3.endpoint,
            "s3_access_key_id": s3.access_key,
            "s3_secret_access_key": s3.secret_key,
        }
    with start_distributed(folder, database_url, redis.url, retry_max_retries=5, **settings) as installation:
        rehearsal = Rehearsal(installation, database_url, say)
        with rehearsal.stack:
            installation.processes[2].stop()  # its name is unknown
            for _ in range(workers):
                rehearsal.start_worker()
            yield rehearsal
