"""A simulated contest against real processes whose worker is killed in the middle, and one that is resumed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

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
MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets processes in the background ignore it
from adjudge.cli import main
main()
"""


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


@pytest.fixture
def command(rehearsal: Rehearsal, tmp_path: Path) -> list[str]:
    """The beginning of a command line whose process is logged in as the admin."""
    token = rehearsal.installation.admin.headers["Authorization"].removeprefix("Bearer ")
    (tmp_path / "adjudge").mkdir()
    logins = {rehearsal.installation.url: {"token": token}}
    (tmp_path / "adjudge" / "logins.json").write_text(json.dumps(logins))
    return [sys.executable, "-c", MAIN, "contest", "simulate"]


def start(command: Sequence[str], tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start ``adjudge contest simulate``."""
    chosen = [part for slug in PROBLEMS for part in ("--problem", slug)]
    return subprocess.Popen(
        [*command, *arguments, "--problems", str(EXAMPLES), *chosen, "--language", "python3", "--json"],
        env=os.environ | {"XDG_CONFIG_HOME": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def simulate(
    rehearsal: Rehearsal, contest: str, plan: SimulationPlan, *, is_resumed: bool = False, with_logins: bool = False
) -> SimulationProgress:
    """Run a simulation in this process."""
    token = rehearsal.installation.admin.headers["Authorization"].removeprefix("Bearer ")
    progress = SimulationProgress()
    options = SimulationOptions(contest, plan, DURATION_SEC, is_resumed, with_logins)
    asyncio.run(run_simulation(rehearsal.installation.url, token, options, progress))
    return progress


def test_killed_worker_changes_no_scoreboard_and_loses_nothing(rehearsal: Rehearsal, plan: SimulationPlan) -> None:
    undisturbed = rehearsal.run("calm", plan, DURATION_SEC)
    disturbed = rehearsal.run("crash", plan, DURATION_SEC, kill=True)
    assert compare(undisturbed, disturbed) == []
    assert undisturbed.repeated == 0
    assert disturbed.summary.unexpected == 0
    assert disturbed.summary.result_hash == undisturbed.summary.result_hash
    assert disturbed.summary.accepted == len(plan.submissions) == 20


def test_interrupted_simulation_is_resumed_without_duplicates(
    rehearsal: Rehearsal, command: list[str], tmp_path: Path
) -> None:
    options = ("resumed", "--teams", "8", "--submissions", "15", "--duration", "20")
    running = start(command, tmp_path, *options)
    listed, admin = "/api/v1/contests/resumed/jury/submissions", rehearsal.installation.admin
    while running.poll() is None and len(admin.get(listed).json().get("items", ())) < 3:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "The contest resumed with its accounts stays on the server" in said
    assert "--resume" in said
    before = {item["submission_id"] for item in admin.get(listed).json()["items"]}
    assert 3 <= len(before) < 15
    again = start(command, tmp_path, *options, "--resume")
    found, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    summary = json.loads(found)
    assert (summary["accepted"], summary["problems"], summary["errors"]) == (15, [], {})
    assert summary["scoreboard"][0]["rank"] == 1
    after = {item["submission_id"] for item in admin.get(listed, params={"limit": 100}).json()["items"]}
    assert (len(after), before < after) == (15, True)


def test_teams_log_in_with_their_passwords(rehearsal: Rehearsal, plan: SimulationPlan) -> None:
    few = replace(plan, teams=3, submissions=tuple(item for item in plan.submissions if item.team < 3), questions=())
    progress = simulate(rehearsal, "logins", few, with_logins=True)
    summary = summarize(SimulationOptions("logins", few, DURATION_SEC), progress)
    assert (summary.problems, summary.accepted) == ([], len(few.submissions))


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
