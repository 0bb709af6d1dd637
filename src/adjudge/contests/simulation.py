"""Plans a simulated contest: who submits and asks what, and when. The same seed gives the same plan. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from adjudge.domain.errors import InvalidInput

_FIRST_ATTEMPT: Final = 0.12
"""Mean part of the contest that an average team needs for its first attempt at a problem."""
_NEXT_ATTEMPT: Final = 0.03
"""Mean part of the contest between a rejected attempt and the next one."""
_MOST_WRONG: Final = 4
"""A team gives a problem up after this many rejected attempts."""
_ASKING: Final = 0.1
"""Part of the teams that ask a question."""
_LAST: Final = 0.99
"""When the last of a given number of submissions is made."""
_FASTER: Final = 2
"""Factor by which teams get faster until the plan has enough submissions."""
_MOST_FASTER: Final = 10

Programs = Mapping[str, Sequence["SimulatedProgram"]]
"""The programs by problem."""


@dataclass(frozen=True, slots=True)
class SimulatedProgram:
    """A program of the jury, and whether it is accepted."""

    language: str
    source: str
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class PlannedSubmission:
    """Who submits what, and when."""

    at: float
    """Part of the contest that is over: 0 to 1."""
    team: int
    problem: str
    program: SimulatedProgram


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """Who asks the jury about which problem, and when."""

    at: float
    team: int
    problem: str


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """A simulated contest."""

    teams: int
    problems: tuple[str, ...]
    submissions: tuple[PlannedSubmission, ...]
    """In the order of time."""
    questions: tuple[PlannedQuestion, ...]

    def digest(self) -> str:
        """A hash of the submissions: equal plans have equal hashes."""
        items = [(item.team, item.problem, item.program.language, item.program.source) for item in self.submissions]
        return hashlib.sha256(repr((self.teams, items)).encode()).hexdigest()[:16]


def plan_simulation(*, seed: int, teams: int, programs: Programs, submissions: int | None = None) -> SimulationPlan:
    """Plan a contest; with ``submissions``, teams work faster if needed, and the plan ends after that many."""
    planned = _plan_submissions(seed, teams, programs, 1.0)
    if submissions is not None:
        pace = 1.0
        for _ in range(_MOST_FASTER):
            if len(planned) >= submissions:
                break
            pace /= _FASTER
            planned = _plan_submissions(seed, teams, programs, pace)
        if len(planned) < submissions:
            raise InvalidInput(
                f"submissions: {teams} teams make at most {len(planned)} on {len(programs)} problems; "
                "raise --teams or lower --submissions.",
                field="submissions",
            )
        planned = _stretched(planned[:submissions])
    return SimulationPlan(teams, tuple(sorted(programs)), tuple(planned), tuple(_plan_questions(seed, teams, programs)))


def _plan_submissions(seed: int, teams: int, programs: Programs, pace: float) -> list[PlannedSubmission]:
    """Plan the submissions of all teams in the order of time.

    A team has a skill and works on one problem after another. Better teams need less time and submit fewer wrong
    programs. A team leaves a problem after an accepted program or after too many rejected ones.
    """
    random = Random(seed)  # noqa: S311  # a rehearsal has no secrets
    planned: list[PlannedSubmission] = []
    for team in range(teams):
        skill = random.betavariate(2, 2)
        at = random.uniform(0, 0.03)
        order = sorted(programs)
        random.shuffle(order)
        for problem in order:
            at += random.expovariate(1 / (_FIRST_ATTEMPT * (1.5 - skill))) * pace
            for program in _attempts(random, skill, programs[problem]):
                if at < 1:
                    planned.append(PlannedSubmission(at, team, problem, program))
                at += random.expovariate(1 / _NEXT_ATTEMPT) * pace
    return sorted(planned, key=lambda item: (item.at, item.team))


def _stretched(planned: Sequence[PlannedSubmission]) -> list[PlannedSubmission]:
    """The same submissions over the whole contest."""
    factor = _LAST / planned[-1].at
    return [replace(item, at=item.at * factor) for item in planned]


def _attempts(random: Random, skill: float, programs: Sequence[SimulatedProgram]) -> list[SimulatedProgram]:
    """The programs that a team submits to one problem: rejected ones, then mostly an accepted one."""
    accepted = [item for item in programs if item.is_accepted]
    rejected = [item for item in programs if not item.is_accepted]
    chosen: list[SimulatedProgram] = []
    while rejected and len(chosen) < _MOST_WRONG and random.random() > 0.35 + skill / 2:
        chosen.append(random.choice(rejected))
    if accepted and len(chosen) < _MOST_WRONG:
        chosen.append(random.choice(accepted))
    return chosen


def _plan_questions(seed: int, teams: int, programs: Programs) -> list[PlannedQuestion]:
    random = Random(f"questions {seed}")  # noqa: S311  # a rehearsal has no secrets
    problems = sorted(programs)
    asking = [team for team in range(teams) if random.random() < _ASKING]
    planned = [PlannedQuestion(random.uniform(0.05, 0.8), team, random.choice(problems)) for team in asking]
    return sorted(planned, key=lambda item: (item.at, item.team))
