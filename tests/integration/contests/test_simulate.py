"""A simulated contest against real processes whose worker is killed in the middle, and one that is resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from adjudge.cli.contest_simulate import choose_programs, load_programs
from adjudge.cli.simulation_report import summarize
from adjudge.cli.simulation_run import SimulationOptions, SimulationProgress, run_simulation
from adjudge.client import NotFoundError
from adjudge.contests.simulation import SimulationPlan, plan_simulation
from adjudge.domain.errors import InvalidInput
from tests.rehearsal.rehearsal import Rehearsal, compare, open_rehearsal
from tests.support.databases import PostgresDatabases
from tests.support.problem_packages import EXAMPLES
from tests.support.servers import RedisServer

pytestmark = pytest.mark.slow
TEAMS = 12
DURATION_SEC = 4.0
PROBLEMS = ("multiples", "shout")


@pytest.fixture(scope="module")
def rehearsal(
    tmp_path_factory: pytest.TempPathFactory, postgres_databases: PostgresDatabases, redis_server: RedisServer
) -> Iterator[Rehearsal]:
    """An installation with two workers."""
    with (
        postgres_databases.fresh() as url,
        open_rehearsal(
            tmp_path_factory.mktemp("rehearsal"),
            url,
            redis_server,
            None,
            job_lease_sec=2,
            job_heartbeat_sec=0.5,
            job_reclaim_interval_sec=0.5,
            login_per_min=2,
        ) as found,
    ):
        found.publish(PROBLEMS)
        yield found


@pytest.fixture(scope="module")
def plan() -> SimulationPlan:
    """Programs that need no compiler."""
    programs = choose_programs(load_programs(EXAMPLES), PROBLEMS, ["python3"])
    return plan_simulation(seed=7, teams=TEAMS, programs=programs, submissions=20)


def simulate(
    rehearsal: Rehearsal, contest: str, plan: SimulationPlan, *, is_resumed: bool = False, stop_after: int | None = None
) -> SimulationProgress:
    """Run a simulation; with ``stop_after`` it is interrupted when so many submissions are accepted."""
    token = rehearsal.installation.admin.headers["Authorization"].removeprefix("Bearer ")
    progress = SimulationProgress()
    options = SimulationOptions(contest, plan, DURATION_SEC, is_resumed)

    async def run() -> None:
        running = asyncio.create_task(run_simulation(rehearsal.installation.url, token, options, progress))
        while stop_after is not None and len(progress.accepted) < stop_after:
            await asyncio.sleep(0.01)
        if stop_after is not None:
            running.cancel()
        await asyncio.wait([running])
        if not running.cancelled():
            running.result()

    asyncio.run(run())
    return progress


def test_killed_worker_changes_no_scoreboard_and_loses_nothing(rehearsal: Rehearsal, plan: SimulationPlan) -> None:
    undisturbed = rehearsal.run("calm", plan, DURATION_SEC)
    disturbed = rehearsal.run("crash", plan, DURATION_SEC, kill=True)
    assert compare(undisturbed, disturbed) == []
    assert undisturbed.repeated == 0
    assert disturbed.summary.unexpected == 0
    assert disturbed.summary.result_hash == undisturbed.summary.result_hash
    assert disturbed.summary.accepted == len(plan.submissions) == 20


def test_interrupted_simulation_is_resumed_without_duplicates(rehearsal: Rehearsal, plan: SimulationPlan) -> None:
    first = simulate(rehearsal, "resumed", plan, stop_after=5)
    assert 5 <= len(first.accepted) < len(plan.submissions)
    second = simulate(rehearsal, "resumed", plan, is_resumed=True)
    assert first.accepted.items() <= second.accepted.items()
    summary = summarize(SimulationOptions("resumed", plan, DURATION_SEC), second)
    assert (summary.problems, summary.errors) == ([], {})
    assert len(second.listed) == len(plan.submissions)


def test_resuming_needs_a_running_contest_and_the_same_teams(rehearsal: Rehearsal, plan: SimulationPlan) -> None:
    with pytest.raises(NotFoundError):
        simulate(rehearsal, "unknown", plan, is_resumed=True)
    body = {"slug": "draft", "title": "Draft", "duration_sec": 3_600}
    assert rehearsal.installation.admin.post("/api/v1/contests", json=body).status_code == 201
    with pytest.raises(InvalidInput, match=r"draft is not running \(draft\)"):
        simulate(rehearsal, "draft", plan, is_resumed=True)


def test_unknown_problem_creates_nothing(rehearsal: Rehearsal) -> None:
    programs = choose_programs(load_programs(EXAMPLES), ["shout", "paving"], [])
    missing = plan_simulation(seed=1, teams=2, programs=programs)
    with pytest.raises(InvalidInput, match="paving not published"):
        simulate(rehearsal, "missing", missing)
    assert rehearsal.installation.admin.get("/api/v1/contests/missing").status_code == 404
