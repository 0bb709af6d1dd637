"""Plans the submissions of a simulated contest: the same seed gives the same plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

_FIRST_ATTEMPT: Final = 0.12
"""Mean part of the contest that an average team needs for its first attempt at a problem."""
_NEXT_ATTEMPT: Final = 0.03
"""Mean part of the contest between a rejected attempt and the next one."""
_MOST_WRONG: Final = 4
"""A team gives a problem up after this many rejected attempts."""


@dataclass(frozen=True, slots=True)
class SimulatedProgram:
    """A program of the jury, and whether it is accepted."""

    language: str
    source: str
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class PlannedSubmission:
    """Who submits what, and when."""

    at_sec: float
    team: int
    problem: str
    program: SimulatedProgram


def plan_submissions(
    *, seed: int, teams: int, programs: Mapping[str, Sequence[SimulatedProgram]], duration_sec: float
) -> list[PlannedSubmission]:
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
            at += random.expovariate(1 / (_FIRST_ATTEMPT * (1.5 - skill)))
            for program in _attempts(random, skill, programs[problem]):
                if at >= 1:
                    break
                planned.append(PlannedSubmission(at * duration_sec, team, problem, program))
                at += random.expovariate(1 / _NEXT_ATTEMPT)
    return sorted(planned, key=lambda item: (item.at_sec, item.team))


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
