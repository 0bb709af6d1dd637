"""``adjudge contest simulate`` against a running installation whose worker is killed in the middle."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adjudge.cli.contest_simulate import SimulationSummary, count_rows, load_programs, run_simulation
from adjudge.contests.load_board import load_board
from adjudge.contests.simulation import PlannedSubmission, SimulatedProgram, plan_submissions
from adjudge.store import Tx, open_database
from adjudge.store.contests import queries
from adjudge.store.contests.scoreboard import JURY
from tests.support.chain_fixture import zip_folder
from tests.support.databases import PostgresDatabases
from tests.support.installation import AdjudgeProcess, Installation, start_distributed
from tests.support.servers import RedisServer

EXAMPLES = Path(__file__).parents[3] / "examples" / "problems"
TEAMS = 12
DURATION_SEC = 4.0
FIELDS = ("shout",)


def cheap_programs() -> dict[str, list[SimulatedProgram]]:
    """Programs that need no compiler."""
    found = load_programs(EXAMPLES)
    return {slug: [item for item in found[slug] if item.language == "python3"] for slug in FIELDS}


async def solved_in_database(url: str, contest: str) -> list[int]:
    """Solved problems of all teams as the stored scoreboard has them, best first."""

    async def read(tx: Tx) -> list[int]:
        board = (await load_board(tx, await queries.find_contest(tx, contest), JURY)).board
        return sorted((row.keys.k1 for row in board.rows), reverse=True)

    async with open_database(url, migrate=False) as database:
        return await database.read(read)


def simulate(installation: Installation, contest: str, plan: list[PlannedSubmission]) -> SimulationSummary:
    token = installation.admin.headers["Authorization"].removeprefix("Bearer ")
    return asyncio.run(
        run_simulation(
            installation.url,
            token,
            contest,
            teams=TEAMS,
            duration_sec=DURATION_SEC,
            programs=cheap_programs(),
            plan=plan,
        )
    )


@pytest.mark.slow
def test_killed_worker_changes_no_scoreboard_and_loses_nothing(
    tmp_path: Path, postgres_databases: PostgresDatabases, redis_server: RedisServer
) -> None:
    plan = plan_submissions(seed=7, teams=TEAMS, programs=cheap_programs(), duration_sec=DURATION_SEC)
    verdicts = ["AC" if item.program.is_accepted else "WA" for item in plan]
    wanted = count_rows(plan, verdicts, TEAMS)
    with (
        postgres_databases.fresh() as url,
        start_distributed(
            tmp_path,
            url,
            redis_server.url,
            job_lease_sec=2,
            job_heartbeat_sec=0.5,
            job_reclaim_interval_sec=0.5,
            retry_max_retries=5,
        ) as installation,
    ):
        for slug in FIELDS:
            installation.publish(zip_folder(EXAMPLES / slug), slug=slug)
        calm = simulate(installation, "calm", plan)
        worker = installation.processes[2]
        replacement: list[AdjudgeProcess] = []

        async def crash() -> None:
            await asyncio.sleep(DURATION_SEC / 2)
            worker.kill()
            replacement.append(AdjudgeProcess(["worker"], installation.environment, tmp_path))

        async def both() -> SimulationSummary:
            token = installation.admin.headers["Authorization"].removeprefix("Bearer ")
            running = run_simulation(
                installation.url,
                token,
                "crash",
                teams=TEAMS,
                duration_sec=DURATION_SEC,
                programs=cheap_programs(),
                plan=plan,
            )
            found, _ = await asyncio.gather(running, crash())
            return found

        try:
            crashed = asyncio.run(both())
        finally:
            for process in replacement:
                process.stop()
        assert (calm.unjudged, crashed.unjudged) == (0, 0)
        assert calm.submissions == crashed.submissions == len(plan)
        assert calm.rows == crashed.rows
        assert [row.solved for row in calm.rows] == [row.solved for row in wanted]
        boards = [asyncio.run(solved_in_database(url, contest)) for contest in ("calm", "crash")]
        assert boards[0] == boards[1] == [row.solved for row in wanted]
