"""Simulated contests: deterministic plans, programs of the example problems, hosts that are refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from adjudge.cli.contest_simulate import check_host, count_rows, load_programs
from adjudge.contests.simulation import PlannedSubmission, SimulatedProgram, plan_submissions
from adjudge.domain.errors import InvalidInput

EXAMPLES = Path(__file__).parents[3] / "examples" / "problems"
RIGHT, WRONG = SimulatedProgram("c", "right", True), SimulatedProgram("c", "wrong", False)


def plan(seed: int, teams: int = 50) -> list[PlannedSubmission]:
    return plan_submissions(seed=seed, teams=teams, programs={"a": [RIGHT, WRONG], "b": [RIGHT]}, duration_sec=100)


def test_plan_depends_on_the_seed_alone() -> None:
    assert plan(1) == plan(1)
    assert plan(1) != plan(2)


def test_planned_teams_behave_like_teams() -> None:
    planned = plan(3)
    times = [item.at_sec for item in planned]
    assert times == sorted(times)
    assert all(0 <= at < 100 for at in times)
    per_problem: dict[tuple[int, str], list[bool]] = {}
    for item in planned:
        per_problem.setdefault((item.team, item.problem), []).append(item.program.is_accepted)
    assert all(not any(verdicts[:-1]) for verdicts in per_problem.values()), "nobody submits after an accepted program"
    counts = Counter(item.program.is_accepted for item in planned)
    assert counts[True] > counts[False] > 0


def test_rows_count_solved_problems_and_rejections_before_them() -> None:
    planned = [PlannedSubmission(0, team, "a", program) for team, program in ((0, WRONG), (1, WRONG), (1, RIGHT))]
    rows = count_rows(planned, ["WA", "WA", "AC"], teams=3)
    assert [(row.team, row.solved, row.rejected) for row in rows] == [
        ("team 2", 1, 1),
        ("team 3", 0, 0),
        ("team 1", 0, 1),
    ]


def test_example_problems_have_programs() -> None:
    programs = load_programs(EXAMPLES)
    assert {"shout", "multiples"} <= set(programs)
    assert all(any(item.is_accepted for item in found) for found in programs.values())


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:80"])
def test_loopback_needs_no_option(url: str) -> None:
    check_host(url, host_is_mine=False)


def test_other_hosts_need_an_option() -> None:
    with pytest.raises(InvalidInput, match="--host-is-mine"):
        check_host("https://judge.example.org", host_is_mine=False)
    check_host("https://judge.example.org", host_is_mine=True)


def test_folder_without_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no package with an accepted program"):
        load_programs(tmp_path)
