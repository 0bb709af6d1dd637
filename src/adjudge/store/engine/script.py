"""Several statements that run as one: a single WITH on PostgreSQL, one after another on SQLite.

A script is a list of steps. Each step is one statement; it reads the caller's input rows and the rows that earlier
steps *returned*, as relations: ``FROM {finished_job}``. PostgreSQL gets all of them in one round trip, and may commit
by itself (``Tx.run(…, last=True)``); on SQLite a round trip costs nothing. Rules for the texts:

- All steps of a script share one snapshot on PostgreSQL. A step must not read what another one writes, but only what it
  returned; it matches rows by primary key, because an UPDATE that waited re-reads only the rows that it matched.
- Steps without a data dependency run in any order. ``after`` states an order that locks need.
- ``{now}``, ``:name`` and the types of input columns are as in ``Statement``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from adjudge.store.engine.statement import Rows

INCOMPLETE: Final = "script_incomplete"
"""The constraint that PostgreSQL names when a script that was to commit by itself must not."""

Inputs = Mapping[str, Rows]
Returned = dict[str, list[Any]]
"""The rows that steps returned, by the step's name; a row is a list of values in the order of ``Step.returns``."""

_RELATION = re.compile(r"\{([a-z_]+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True)
class Step:
    """One statement of a script."""

    name: str
    sql: str
    returns: tuple[str, ...] = ()
    """The columns that it returns, in the order of its RETURNING clause or select list."""
    carries: str = ""
    """The relation whose columns later steps see beside the returned ones; its rows are matched by ``key``."""
    key: tuple[tuple[str, str], ...] = ()
    """The pairs of a returned and a carried column that match; together unique on both sides."""
    after: str = ""
    """A step that must be over before this one locks its first row."""
    is_output: bool = True
    """Whether the caller gets its rows, or only later steps do."""
    only: tuple[str, str] | None = None
    """A column of the first relation that it reads, and a value: the step sees only the rows with this value."""
    sqlite: str | None = None
    """SQLite's own text, where one cannot serve both."""


@dataclass(frozen=True)
class Script:
    """What to run, what it is called, and why it exists."""

    name: str
    purpose: str
    inputs: Mapping[str, Mapping[str, str]]
    """By relation: its columns and their SQL types, in the order of a row's values."""
    steps: tuple[Step, ...]
    complete: str = ""
    """A condition over the relations: whether nothing is left to do in the transaction, so that it may commit."""

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        found = {name: tuple(columns) for name, columns in self.inputs.items()}
        for step in self.steps:
            found[step.name] = step.returns + (found[step.carries] if step.carries else ())
        return found


@dataclass(frozen=True)
class PostgresScript:
    """A script as one statement of PostgreSQL."""

    sql: str
    parameters: tuple[str, ...]
    singles: tuple[bool, ...]
    """Which of the inputs are one row each, given as plain values."""
    inputs: Mapping[str, Mapping[str, str]]
    outputs: tuple[str, ...]

    def arguments(self, inputs: Inputs, named: Mapping[str, object]) -> list[object]:
        """Positional arguments: columns of the inputs, then the named parameters."""
        found: list[object] = []
        for (name, columns), is_single in zip(self.inputs.items(), self.singles, strict=True):
            rows = inputs[name]
            found += rows[0] if is_single else [list(cells) for cells in zip(*rows, strict=True)] or [[]] * len(columns)
        return found + [named[name] for name in self.parameters]

    def returned(self, row: Sequence[str | None]) -> Returned:
        """What the steps returned, from the one row of the statement."""
        return {name: json.loads(text) if text else [] for name, text in zip(self.outputs, row, strict=False)}


@dataclass(frozen=True)
class SqliteStep:
    """One step as SQLite runs it."""

    step: Step
    sql: str
    relations: tuple[str, ...]
    """The relations that it reads, each passed as a JSON text; without rows of the first the step is left out."""
    parameters: tuple[str, ...]
    key: tuple[tuple[int, int], ...]
    """The positions of the columns by which carried columns are joined."""
    only: tuple[int, str] | None = None
    """The position of the column by which rows of the first relation are selected, and its value."""

    def select(self, relations: Returned) -> list[Any]:
        """The rows of the first relation that the step reads."""
        rows = relations[self.relations[0]] if self.relations else []
        if self.only is None:
            return rows
        column, value = self.only
        return [row for row in rows if row[column] == value]

    def with_carried(self, rows: Sequence[Sequence[Any]], carried: Sequence[Sequence[Any]]) -> list[Any]:
        """The returned rows with the columns that go along: RETURNING cannot name those of other tables on SQLite."""
        if not self.key:
            return [list(row) for row in rows]
        own_key, carried_key = (itemgetter(*positions) for positions in zip(*self.key, strict=True))
        by_key = {carried_key(row): row for row in carried}
        return [[*row, *by_key[own_key(row)]] for row in rows]


@dataclass
class PostgresScripts:
    """The scripts of PostgreSQL, each rendered on first use."""

    now: str
    _rendered: dict[tuple[str, tuple[bool, ...], bool], PostgresScript] = field(default_factory=dict)

    def of(self, script: Script, inputs: Inputs, *, is_last: bool) -> PostgresScript:
        """The text for these inputs."""
        singles = tuple(len(inputs[name]) == 1 for name in script.inputs)
        rendered = self._rendered.get((script.name, singles, is_last))
        if rendered is None:
            rendered = render_postgres(script, self.now, singles, is_last=is_last)
            self._rendered[script.name, singles, is_last] = rendered
        return rendered


def render_postgres(script: Script, now: str, singles: tuple[bool, ...], *, is_last: bool) -> PostgresScript:
    """Write ``script`` as one WITH; one that ``is_last`` fails where it is not complete."""
    given, count = _postgres_inputs(script, singles)
    order: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${order.setdefault(match[1], count + 1 + len(order))}"

    def render(sql: str, after: str = "", only: tuple[str, str] | None = None) -> str:
        first = next((name for name in _RELATION.findall(sql) if name != "now"), "")

        def relation(match: re.Match[str]) -> str:
            name = match[1]
            if name == "now":
                return now
            source = given.get(name, name)
            filters = [f"{only[0]} = '{only[1]}'"] if only and name == first else []
            if after:  # the count is asked for so that ``after`` is over before
                filters.append(f"(SELECT count(*) FROM {after}) >= 0")
            return f"(SELECT * FROM {source} WHERE {' AND '.join(filters)}) AS {name}" if filters else source

        return _RELATION.sub(relation, _PARAMETER.sub(number, sql.strip()))

    columns, parts = script.columns, []
    for step in script.steps:
        carried = "".join(f", {step.carries}.{column}" for column in columns[step.carries]) if step.carries else ""
        parts.append(f"{step.name} AS ({render(step.sql, step.after, step.only)}{carried})")
    outputs = [step for step in script.steps if step.is_output]
    selected = [
        f"(SELECT json_agg(json_build_array({', '.join(step.returns)})) FROM {step.name}) AS {step.name}"
        for step in outputs
    ]
    if is_last and script.complete:
        refuse = f"adjudge_refuse('{INCOMPLETE}', '', '')"
        selected.append(f"CASE WHEN NOT ({render(script.complete)}) THEN {refuse} END AS is_incomplete")
    sql = f"WITH {', '.join(parts)} SELECT {', '.join(selected) or 'NULL'}"
    return PostgresScript(sql, tuple(order), singles, script.inputs, tuple(step.name for step in outputs))


def _postgres_inputs(script: Script, singles: tuple[bool, ...]) -> tuple[dict[str, str], int]:
    """How each input is written in a FROM clause, and how many arguments they take in all."""
    given, count = {}, 0
    for (name, kinds), is_single in zip(script.inputs.items(), singles, strict=True):
        suffix = "" if is_single else "[]"
        cells = [f"CAST(${count + index} AS {kind}{suffix})" for index, kind in enumerate(kinds.values(), 1)]
        count += len(kinds)
        if is_single:
            named = ", ".join(f"{cell} AS {column}" for cell, column in zip(cells, kinds, strict=True))
            given[name] = f"(SELECT {named}) AS {name}"
        else:
            given[name] = f"unnest({', '.join(cells)}) AS {name}({', '.join(kinds)})"
    return given, count


def render_sqlite(script: Script, now: str) -> list[SqliteStep]:
    """Write the steps of ``script``, each of which reads its relations from JSON texts."""
    columns = script.columns
    return [_sqlite_step(step, columns, now) for step in script.steps]


def _sqlite_step(step: Step, columns: Mapping[str, tuple[str, ...]], now: str) -> SqliteStep:
    text = (step.sql if step.sqlite is None else step.sqlite).strip()
    relations = tuple(dict.fromkeys(name for name in _RELATION.findall(text) if name != "now"))
    order: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"?{order.setdefault(match[1], len(relations) + 1 + len(order))}"

    text = _RELATION.sub(lambda match: now if match[1] == "now" else match[1], _PARAMETER.sub(number, text))
    read = []
    for position, name in enumerate(relations, 1):
        cells = ", ".join(f"json_extract(value, '$[{index}]') AS {cell}" for index, cell in enumerate(columns[name]))
        read.append(f"{name} AS MATERIALIZED (SELECT {cells} FROM json_each(?{position}))")
    key = tuple((step.returns.index(own), columns[step.carries].index(other)) for own, other in step.key)
    sql = f"WITH {', '.join(read)} {text}" if read else text
    only = (columns[relations[0]].index(step.only[0]), step.only[1]) if step.only else None
    return SqliteStep(step, sql, relations, tuple(order), key, only)
