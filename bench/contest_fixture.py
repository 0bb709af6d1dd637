"""A contest for its benchmark: teams, problems and judged submissions, written in bulk and folded by the real code."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg

from adjudge.contests import lifecycle
from adjudge.contests.scoreboard import refold_all
from adjudge.domain.contest import MINUTE_US
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store import Database, Tx, open_database
from adjudge.store.accounts import users
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests.models import ContestProblem, ContestSettings
from adjudge.store.engine.connect import sqlite_path
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models

SLUG = "bench"
ORGANIZATIONS = 300
_STARTED_US = 60 * MINUTE_US
"""How long before now the contest began."""
_Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class ContestSize:
    """How much a contest has."""

    teams: int
    problems: int
    submissions: int

    def __str__(self) -> str:
        return f"{self.teams:,} teams"


@dataclass(frozen=True, slots=True)
class ContestSeed:
    """A database with a running contest; its ids can be passed to another process."""

    url: str
    contest_id: str
    user_id: str
    problem_ids: list[str]
    revision_ids: list[str]
    participant_ids: list[str]
    refold_sec: float = 0.0
    """How long the whole scoreboard took to compute."""


async def seed_contest(url: str, size: ContestSize) -> ContestSeed:
    """Migrate a database and put a running contest into it."""
    seed = ContestSeed(
        url,
        new_id(),
        new_id(),
        [new_id() for _ in range(size.problems)],
        [new_id() for _ in range(size.problems)],
        [new_id() for _ in range(size.teams)],
    )
    async with open_database(url) as database:
        started_at = time.time_ns() // 1_000 - _STARTED_US
        await database.transact(lambda tx: _create(tx, seed, started_at))
        await _write(url, dict(_tables(seed, size, started_at)))
        return replace(seed, refold_sec=await _refold(database, seed.contest_id))


async def _create(tx: Tx, seed: ContestSeed, started_at: int) -> None:
    owner, contest_id = seed.user_id, seed.contest_id
    await users.insert(tx, users.NewUser(owner, "owner"))
    for number, (problem_id, revision_id) in enumerate(zip(seed.problem_ids, seed.revision_ids, strict=True)):
        await problem_commands.insert(
            tx, problem_models.NewProblem(problem_id, f"problem-{number}", f"Problem {number}", owner)
        )
        revision = problem_models.NewRevision(revision_id, problem_id, "plain", "0" * 64, owner)
        await problem_commands.add_revision(tx, revision)
    settings = ContestSettings(title="Benchmark", duration_us=300 * MINUTE_US, starts_at=started_at)
    await lifecycle.create(tx, contest_id, SLUG, settings, created_by=owner)
    listed = [
        ContestProblem(contest_id, problem_id, revision_id, chr(65 + index), index)
        for index, (problem_id, revision_id) in enumerate(zip(seed.problem_ids, seed.revision_ids, strict=True))
    ]
    await lifecycle.set_problems(tx, contest_id, listed, actor=owner, reason="")
    await lifecycle.publish(tx, contest_id, actor=owner, reason="")


async def _refold(database: Database, contest_id: str) -> float:
    async def refold(tx: Tx) -> None:
        await scoreboard_store.lock_exclusive(tx, contest_id)
        await refold_all(tx, contest_id)

    began = time.perf_counter()
    await database.transact(refold)
    return time.perf_counter() - began


def _tables(seed: ContestSeed, size: ContestSize, started_at: int) -> Iterator[tuple[str, tuple[str, _Rows]]]:
    """Columns and rows by table, in the order of the foreign keys."""
    at = started_at
    organizations = [new_id() for _ in range(ORGANIZATIONS)]
    yield (
        "organizations",
        (
            "id, code, name, created_at, updated_at",
            [(key, f"o{number}", f"University {number}", at, at) for number, key in enumerate(organizations)],
        ),
    )
    teams = [new_id() for _ in range(size.teams)]
    places = [organizations[number % ORGANIZATIONS] for number in range(size.teams)]
    yield (
        "teams",
        (
            "id, code, name, organization_id, created_at, updated_at",
            [
                (key, f"t{number}", f"Team {number}", place, at, at)
                for number, (key, place) in enumerate(zip(teams, places, strict=True))
            ],
        ),
    )
    people = zip(seed.participant_ids, teams, places, strict=True)
    yield (
        "participants",
        (
            "id, contest_id, code, name, team_id, organization_id, created_at, updated_at",
            [
                (key, seed.contest_id, f"t{number}", f"Team {number}", team, place, at, at)
                for number, (key, team, place) in enumerate(people)
            ],
        ),
    )
    yield from _submission_tables(seed, size, started_at)


def _submission_tables(
    seed: ContestSeed, size: ContestSize, started_at: int
) -> Iterator[tuple[str, tuple[str, _Rows]]]:
    submitted, entered = [], []
    for number in range(size.submissions):
        team, turn = number % size.teams, number // size.teams
        problem = (team * 7 + turn // 2) % size.problems  # two attempts at a problem, then the next one
        verdict = Verdict.AC if (team * 31 + turn * 17) % 5 < 2 else Verdict.WA
        at = started_at + (_STARTED_US - MINUTE_US) * number // size.submissions
        key, problem_id = new_id(), seed.problem_ids[problem]
        submitted.append(
            (
                *(key, seed.user_id, problem_id, seed.revision_ids[problem], seed.contest_id, "cpp", "0" * 64, 1),
                *("accepted" if verdict is Verdict.AC else "wrong_answer", verdict.value, at, at, at),
            )
        )
        entered.append((key, seed.contest_id, seed.participant_ids[team], problem_id, number + 1, at))
    columns = "id, user_id, problem_id, revision_id, contest_id, language, source_digest, source_bytes"
    yield "submissions", (f"{columns}, status, verdict, created_at, updated_at, finished_at", submitted)
    columns = "submission_id, contest_id, participant_id, problem_id, number, received_at"
    yield "contest_submissions", (columns, entered)


async def _write(url: str, tables: dict[str, tuple[str, _Rows]]) -> None:
    count = len(tables["contest_submissions"][1])
    counter = f"UPDATE contest_counters SET next_number = {count + 1}"
    path = sqlite_path(url)
    if path is not None:
        _write_sqlite(path, tables, counter)
    else:
        await _write_postgres(url, tables, counter)


def _write_sqlite(path: Path, tables: dict[str, tuple[str, _Rows]], counter: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.create_function("adjudge_now", 0, lambda: time.time_ns() // 1_000)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN")
    for table, (columns, rows) in tables.items():
        marks = ", ".join("?" for _ in columns.split(","))
        if table == "submissions":  # PostgreSQL numbers them by itself
            numbered = [(*row, number) for number, row in enumerate(rows, 1)]
            connection.executemany(f"INSERT INTO {table} ({columns}, number) VALUES ({marks}, ?)", numbered)
        else:
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
    connection.execute(counter)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def _write_postgres(url: str, tables: dict[str, tuple[str, _Rows]], counter: str) -> None:
    connection = await asyncpg.connect(url)
    for table, (columns, rows) in tables.items():
        await connection.copy_records_to_table(table, records=rows, columns=columns.split(", "))
        await connection.execute(f"VACUUM ANALYZE {table}")  # what autovacuum does after such growth
    await connection.execute(counter)
    await connection.close()
