"""A second, slow implementation of clock and scoring formats, written from docs/reference/scoring-rules.md.

It shares no code with the first one: it looks at the whole record of actions, counts time unit by unit, and finds times
of improvement by scoring every prefix again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple


class Action(NamedTuple):
    """Something that happened to a submission; its verdict is the last one judged, unless it is overridden."""

    kind: str
    """submit, judge (also a rejudge), override, ignore or restore."""
    number: int
    at: int = 0
    problem: int = 0
    verdict: str | None = None
    subtasks: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class History:
    """A record of one participant; times in units of ``unit_us``."""

    unit_us: int
    starts: int
    duration: int
    freeze: int
    removed: tuple[tuple[int, int], ...]
    delay: int
    extra: int
    actions: tuple[Action, ...]


PROBLEMS: tuple[tuple[int, int | None], ...] = (
    (100_000_000, 100_000_000),
    (50_000_001, 100_000_000),
    (7_000_000, None),
)
"""Points in the contest and own maximum, in micro-points."""


class Attempt(NamedTuple):
    number: int
    problem: int
    time_us: int
    verdict: str | None
    subtasks: tuple[int, int]


class NaiveCell(NamedTuple):
    attempts: int
    pending: int
    solved_us: int | None
    score: int
    penalty_sec: int
    first_accepted: int | None
    earliest_pending: int | None


def active_units(history: History, at: int) -> int:
    gone = {unit for first, end in history.removed for unit in range(first, end)}
    return len([unit for unit in range(history.starts, at) if unit not in gone])


def attempts_of(history: History, *, public: bool) -> list[Attempt]:
    found = []
    for action in history.actions:
        if action.kind != "submit":
            continue
        own = [other for other in history.actions if other.number == action.number]
        switches = [other.kind for other in own if other.kind in ("ignore", "restore")]
        if switches and switches[-1] == "ignore":
            continue
        contest_units = active_units(history, action.at)
        units = contest_units - history.delay
        if action.at < history.starts or not 0 <= units < history.duration + history.extra:
            continue
        rulings = [other for other in own if other.kind == "override"] or [o for o in own if o.kind == "judge"]
        verdict, subtasks = (rulings[-1].verdict, rulings[-1].subtasks) if rulings else (None, (0, 0))
        if verdict == "SE" or (public and contest_units >= history.freeze):
            verdict, subtasks = None, (0, 0)
        found.append(Attempt(action.number, action.problem, units * history.unit_us, verdict, subtasks))
    return sorted(found, key=lambda item: item.number)


def points(attempt: Attempt) -> int:
    return raw_points(attempt.problem, sum(attempt.subtasks), accepted=attempt.verdict == "AC")


def raw_points(problem: int, score: int, *, accepted: bool) -> int:
    worth, own_maximum = PROBLEMS[problem]
    if own_maximum is None:
        return worth if accepted else 0
    return int(Fraction(score * worth, own_maximum))


def _cell(attempts: list[Attempt], score: int, penalty_sec: int, solving: Attempt | None) -> NaiveCell:
    waiting = [item.number for item in attempts if item.verdict is None]
    return NaiveCell(
        attempts=len([item for item in attempts if item.verdict not in (None, "CE")]),
        pending=len(waiting),
        solved_us=solving.time_us if solving else None,
        score=score,
        penalty_sec=penalty_sec,
        first_accepted=solving.number if solving else None,
        earliest_pending=waiting[0] if waiting else None,
    )


def _first(attempts: list[Attempt], wanted: Callable[[Attempt], bool]) -> Attempt | None:
    for attempt in attempts:
        if wanted(attempt):
            return attempt
    return None


def icpc(attempts: list[Attempt], history: History, cfg: dict[str, Any]) -> tuple[NaiveCell, int]:
    granularity_us = 1_000_000 if cfg["seconds"] else 60_000_000
    harmless = ["AC", None] if cfg["compile_error_penalty"] else ["AC", "CE", None]
    accepted = _first(attempts, lambda item: item.verdict == "AC")
    wrong = 0
    for attempt in attempts:
        if attempt == accepted:
            break
        wrong += attempt.verdict not in harmless
    if accepted is None:
        return _cell(attempts, 0, 0, None)._replace(attempts=wrong), 0
    floored_sec = (accepted.time_us - accepted.time_us % granularity_us) // 1_000_000
    cell = _cell(attempts, 0, floored_sec + wrong * cfg["penalty_minutes"] * 60, accepted)
    return cell._replace(attempts=wrong + 1), floored_sec


def _timed(
    attempts: list[Attempt], score_of: Callable[[list[Attempt]], int], solving: Attempt | None
) -> tuple[NaiveCell, int]:
    """A cell whose time is that of the first prefix which scores as much as all."""
    judged = [item for item in attempts if item.verdict is not None]
    final = score_of(judged)
    for count in range(len(judged) + 1):
        if score_of(judged[:count]) == final:
            time_us = judged[count - 1].time_us if final else 0
            return _cell(attempts, final, 0, solving), time_us // 1_000_000
    raise AssertionError("the whole list is a prefix")


def ioi(attempts: list[Attempt], history: History, cfg: dict[str, Any]) -> tuple[NaiveCell, int]:
    def score_of(judged: list[Attempt]) -> int:
        if not judged:
            return 0
        raw = max(item.subtasks[0] for item in judged) + max(item.subtasks[1] for item in judged)
        return raw_points(judged[0].problem, raw, accepted="AC" in [item.verdict for item in judged])

    judged = [item for item in attempts if item.verdict is not None]
    solving = None
    for count in range(len(judged), 0, -1):
        prefix = judged[:count]
        if score_of(prefix) >= PROBLEMS[prefix[0].problem][0] or "AC" in [item.verdict for item in prefix]:
            solving = prefix[-1]
    return _timed(attempts, score_of, solving)


def best(attempts: list[Attempt], history: History, cfg: dict[str, Any]) -> tuple[NaiveCell, int]:
    solving = _first(attempts, lambda item: item.verdict == "AC")
    return _timed(attempts, lambda judged: max((points(item) for item in judged), default=0), solving)


def last(attempts: list[Attempt], history: History, cfg: dict[str, Any]) -> tuple[NaiveCell, int]:
    judged = [item for item in attempts if item.verdict is not None]
    if cfg["ignore_compile_errors"]:
        judged = [item for item in judged if item.verdict != "CE"]
    if not judged:
        return _cell(attempts, 0, 0, None), 0
    final = judged[-1]
    cell = _cell(attempts, points(final), 0, final if final.verdict == "AC" else None)
    return cell, final.time_us // 1_000_000 if points(final) else 0


def atcoder(attempts: list[Attempt], history: History, cfg: dict[str, Any]) -> tuple[NaiveCell, int]:
    cell, time_sec = best(attempts, history, cfg)
    wrong = 0
    for attempt in attempts:
        if attempt.verdict is not None and points(attempt) == cell.score:
            break
        wrong += attempt.verdict not in (None, "CE")
    penalty_sec = wrong * cfg["penalty_minutes"] * 60 if cell.score else 0
    return cell._replace(penalty_sec=penalty_sec), time_sec


def homework(attempts: list[Attempt], history: History, cfg: dict[str, Any]) -> tuple[NaiveCell, int]:
    day_us = 86_400_000_000

    def earned(item: Attempt) -> int:
        percent, limit_us = 0, cfg["deadline_sec"] * 1_000_000 + history.extra * history.unit_us
        while item.time_us >= limit_us and percent < cfg["late_penalty_cap_percent"]:
            percent = min(percent + cfg["late_penalty_percent_per_day"], cfg["late_penalty_cap_percent"])
            limit_us += day_us
            if not cfg["late_penalty_percent_per_day"]:
                break
        return int(Fraction(points(item) * (100 - percent), 100))

    judged = [item for item in attempts if item.verdict is not None]
    if cfg["counts"] == "last":
        judged = judged[-1:]
    score = max((earned(item) for item in judged), default=0)
    return _cell(attempts, score, 0, _first(judged, lambda item: item.verdict == "AC")), 0


NAIVE = {"icpc": icpc, "ioi": ioi, "best": best, "last": last, "atcoder": atcoder, "homework": homework}


def naive_board(
    name: str, history: History, cfg: dict[str, Any], adjust_sec: int, *, public: bool
) -> tuple[list[NaiveCell], tuple[int, int, int]]:
    """The cells of one participant and the sort keys of its row."""
    attempts = attempts_of(history, public=public)
    scored = [
        NAIVE[name]([item for item in attempts if item.problem == problem], history, cfg)
        for problem in range(len(PROBLEMS))
    ]
    cells = [cell for cell, _ in scored]
    last_sec = max(time_sec for _, time_sec in scored)
    total = sum(cell.score for cell in cells)
    penalty_sec = sum(cell.penalty_sec for cell in cells) + adjust_sec
    if name == "icpc":
        return cells, (len([cell for cell in cells if cell.solved_us is not None]), -penalty_sec, -last_sec)
    if name == "atcoder":
        return cells, (total, -(last_sec + penalty_sec), 0)
    if cfg.get("tie_break") == "time":
        return cells, (total, -(last_sec + adjust_sec), 0)
    return cells, (total, 0, 0)
