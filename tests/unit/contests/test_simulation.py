"""Simulated contests: deterministic plans, programs of the example problems, results, hosts that are refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from adjudge.cli.contest_simulate import check_host, choose_programs, load_programs
from adjudge.cli.simulation_report import quantile
from adjudge.contests.simulation import PlannedSubmission, SimulatedProgram, SimulationPlan, plan_simulation
from adjudge.contests.simulation_results import VerdictInContest, count_cells, fingerprint, planned_rows
from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict

EXAMPLES = Path(__file__).parents[3] / "examples" / "problems"
RIGHT, WRONG = SimulatedProgram("c", "right", True), SimulatedProgram("c", "wrong", False)
PROGRAMS = {"a": [RIGHT, WRONG], "b": [RIGHT]}


def plan(seed: int, teams: int = 50, submissions: int | None = None) -> SimulationPlan:
    return plan_simulation(seed=seed, teams=teams, programs=PROGRAMS, submissions=submissions)


def test_plan_depends_on_the_seed_alone() -> None:
    assert plan(1) == plan(1)
    assert plan(1).digest() == plan(1).digest() != plan(2).digest()


def test_planned_teams_behave_like_teams() -> None:
    planned = plan(3).submissions
    times = [item.at for item in planned]
    assert times == sorted(times)
    assert all(0 <= at < 1 for at in times)
    per_problem: dict[tuple[int, str], list[bool]] = {}
    for item in planned:
        per_problem.setdefault((item.team, item.problem), []).append(item.program.is_accepted)
    assert all(not any(verdicts[:-1]) for verdicts in per_problem.values()), "nobody submits after an accepted program"
    counts = Counter(item.program.is_accepted for item in planned)
    assert counts[True] > counts[False] > 0


def test_number_of_submissions_is_exact_or_refused() -> None:
    many = {f"p{number}": [RIGHT, WRONG] for number in range(12)}
    natural = len(plan_simulation(seed=3, teams=50, programs=many).submissions)
    for wanted in (1, natural - 5, natural + 50):
        found = plan_simulation(seed=3, teams=50, programs=many, submissions=wanted).submissions
        assert len(found) == wanted
        assert 0 <= found[0].at <= found[-1].at < 1
    with pytest.raises(InvalidInput, match="raise --teams or lower --submissions"):
        plan(3, submissions=100_000)


def test_some_teams_ask_about_problems_of_the_contest() -> None:
    found = plan(3, teams=200).questions
    assert 5 < len(found) < 60
    assert {item.problem for item in found} == {"a", "b"}


def test_cells_are_counted_in_number_order() -> None:
    verdicts = [
        VerdictInContest(3, "x", "A", Verdict.WA),
        VerdictInContest(1, "x", "A", Verdict.CE),
        VerdictInContest(2, "x", "A", Verdict.AC),
        VerdictInContest(4, "x", "B", None),
    ]
    cells = {key: (cell.attempts, cell.pending, cell.is_solved) for key, cell in count_cells(verdicts).items()}
    assert cells == {("x", "A"): (1, 0, True), ("x", "B"): (0, 1, False)}


def test_planned_rows_have_ranks_and_penalties_of_a_five_hour_contest() -> None:
    made = [(0.5, 0, WRONG), (0.6, 1, WRONG), (0.6, 2, RIGHT), (0.7, 1, RIGHT), (0.7, 3, WRONG)]
    submissions = tuple(PlannedSubmission(at, team, "a", program) for at, team, program in made)
    small = SimulationPlan(4, ("a", "b"), submissions, ())
    verdicts = [Verdict.AC if item.program.is_accepted else Verdict.WA for item in submissions]
    rows = planned_rows(small, verdicts)
    assert [(row.rank, row.team, row.solved, row.penalty_min) for row in rows] == [
        (1, 2, 1, 180),
        (2, 1, 1, 230),
        (3, 0, 0, 0),
        (3, 3, 0, 0),
    ]
    assert rows[1].cells == ((2, True), (0, False))
    assert fingerprint(rows) != fingerprint(planned_rows(small, [None, *verdicts[1:]]))


def test_quantiles() -> None:
    assert (quantile([], 0.5), quantile([3.0, 1.0, 2.0], 0.5), quantile([1.0, 2.0], 0.95)) == (None, 2.0, 2.0)


def test_example_problems_have_programs() -> None:
    programs = load_programs(EXAMPLES)
    assert {"shout", "multiples"} <= set(programs)
    assert all(any(item.is_accepted for item in found) for found in programs.values())


def test_programs_are_chosen_by_problem_and_language() -> None:
    programs = load_programs(EXAMPLES)
    found = choose_programs(programs, ["shout"], ["python3"])
    assert list(found) == ["shout"]
    assert {item.language for item in found["shout"]} == {"python3"}
    for problems, languages, message in (
        (["nothing"], [], "problem: 'nothing' has no accepted program"),
        ([], ["cobol"], "language: 'cobol' cannot be simulated"),
        (["shout"], ["c"], "language: shout has no accepted program in c"),
    ):
        with pytest.raises(InvalidInput, match=message):
            choose_programs(programs, problems, languages)


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
