"""What every benchmark shares: interleaving, medians, the table, the JSON.

A benchmark builds a :class:`Bench`, adds rows and calls :meth:`Bench.finish`::

    bench = Bench("store")
    rates = interleave({"ours": ours, "raw driver": raw}, rounds=sized(full=9, quick=3))
    bench.compare("enqueue, batched", rates, "ours", "raw driver", unit="jobs/s", goal=Goal(at_least=0.5))
    bench.finish()

``JSON=FILE`` writes the rows as well, ``QUICK=1`` asks for a run of about a minute, ``SMOKE=1`` for one of seconds
whose rows are complete and whose values mean nothing: it shows that the benchmark works.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar

Number = TypeVar("Number", int, float)


def is_quick() -> bool:
    """Whether the caller asked for a short run."""
    return _is_set("QUICK") or is_smoke()


def is_smoke() -> bool:
    """Whether the caller only asks whether the benchmark works."""
    return _is_set("SMOKE")


def _is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def sized(*, full: Number, quick: Number | None = None, smoke: Number) -> Number:
    """How many rounds, rows or runs: the full number, a smaller one with ``QUICK=1``, the least with ``SMOKE=1``."""
    if is_smoke():
        return smoke
    return quick if is_quick() and quick is not None else full


@dataclass(frozen=True, slots=True)
class Goal:
    """What a row should reach. It is held against the ratio where there is one, else against the value."""

    at_least: float | None = None
    limit: float | None = None

    def __str__(self) -> str:
        parts = [] if self.at_least is None else [f">= {self.at_least:g}"]
        parts += [] if self.limit is None else [f"<= {self.limit:g}"]
        return " and ".join(parts)

    def is_met(self, figure: float) -> bool:
        """Whether ``figure`` reaches it."""
        return (self.at_least is None or figure >= self.at_least) and (self.limit is None or figure <= self.limit)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    value: float | None
    unit: str
    against: str | None = None
    ratio: float | None = None
    goal: str | None = None
    met: bool | None = None


@dataclass(slots=True)
class Bench:
    """The rows of one benchmark."""

    name: str
    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        against: str | None = None,
        ratio: float | None = None,
        goal: Goal | None = None,
    ) -> None:
        """Add a figure. ``ratio`` is ours over theirs, ``against`` names what theirs is."""
        met = goal.is_met(value if ratio is None else ratio) if goal else None
        self.rows.append(Row(name, value, unit, against, ratio, str(goal) if goal else None, met))

    def compare(
        self,
        name: str,
        figures: Mapping[str, float],
        ours: str,
        theirs: str,
        *,
        unit: str,
        goal: Goal | None = None,
    ) -> None:
        """Add one contender's figure beside another's, from :func:`interleave`."""
        value, other = figures[ours], figures[theirs]
        against = f"{theirs}: {_figure(other)} {unit}"
        self.add(name, value, unit, against=against, ratio=value / other if other else None, goal=goal)

    def absent(self, name: str, why: str) -> None:
        """Add a row for what could not be measured, and why."""
        self.rows.append(Row(name, None, "", against=f"not measured: {why}"))

    def finish(self) -> None:
        """Print the table; write the JSON if a file was named."""
        print(table(self.name, self.rows), flush=True)
        target = os.environ.get("JSON", "")
        if target:
            document = {"bench": self.name, "rows": [asdict(row) for row in self.rows]}
            Path(target).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def interleave(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Run the contenders in turn, ``rounds`` times, and return the median figure of each.

    Every other round goes backwards, so that neither a slow drift of the machine nor what one leaves behind for the
    next favours anyone.
    """
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in _order(list(contenders), number):
            seen[name].append(contenders[name]())
    return {name: median(figures) for name, figures in seen.items()}


def interleave_async(contenders: Mapping[str, Callable[[], Awaitable[float]]], rounds: int) -> dict[str, float]:
    """Do the same for coroutines, on one loop."""
    return asyncio.run(interleave_here(contenders, rounds))


async def interleave_here(contenders: Mapping[str, Callable[[], Awaitable[float]]], rounds: int) -> dict[str, float]:
    """Do the same on the running loop."""
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in _order(list(contenders), number):
            seen[name].append(await contenders[name]())
    return {name: median(figures) for name, figures in seen.items()}


def _order(names: list[str], number: int) -> list[str]:
    return names[::-1] if number % 2 else names


def table(name: str, rows: Sequence[Row]) -> str:
    """Lay the rows out for a terminal."""
    header = ("", "value", "unit", "against", "ratio", "goal", "met")
    lines = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    rule = "  ".join("-" * width for width in widths)
    body = ["  ".join(_padded(line, widths)).rstrip() for line in lines]
    return "\n".join([f"bench {name}", body[0], rule, *body[1:]])


def _padded(line: tuple[str, ...], widths: Sequence[int]) -> list[str]:
    right = {1, 4}
    return [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _cells(row: Row) -> tuple[str, ...]:
    value = "" if row.value is None else _figure(row.value)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    met = {True: "yes", False: "NO", None: ""}[row.met]
    return row.name, value, row.unit, row.against or "", ratio, row.goal or "", met


def _figure(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
