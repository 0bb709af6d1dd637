"""The baseline of submitting: the statements that the store runs for a submission, on the raw driver.

What the store would run is recorded, with its arguments, before the clock starts; then every submission is one
transaction. On PostgreSQL each of N askers has a connection of its own; SQLite has one writer, whom they wait for.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

import asyncpg
import uvloop

from adjudge.domain.ids import new_id
from adjudge.store.engine.connect import sqlite_path
from adjudge.store.engine.postgres import DATABASE_CLOCK, SESSION
from adjudge.store.engine.script import Inputs, PostgresScripts, Returned, Script, Step, render_sqlite
from adjudge.store.engine.statement import Dialect, RenderedStatement, Rows, Statement, as_json, render
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from bench.api_load_generator import MARK

Calls = list[tuple[str, list[Any]]]
NOW = "raw_now()"


class RecordingTx:
    """Takes the place of a transaction and notes what is asked of it."""

    def __init__(self, dialect: Dialect, now: str) -> None:
        self.dialect = dialect
        self._now = now
        self._rendered: dict[str, RenderedStatement] = {}
        self._scripts = PostgresScripts(now)
        self.calls: Calls = []

    def _note(self, statement: Statement, rows: Rows | None, parameters: dict[str, object]) -> None:
        if statement.name not in self._rendered:
            self._rendered[statement.name] = render(statement, self.dialect, self._now)
        text = self._rendered[statement.name]
        self.calls.append((text.sql, list(text.arguments(rows, parameters))))

    async def fetch(self, statement: Statement[Any], rows: Rows | None = None, /, **parameters: object) -> list[Any]:
        """Note it, and return what an insert of these rows returns: their ids and numbers."""
        self._note(statement, rows, parameters)
        return statement.build_rows([(row[0], number) for number, row in enumerate(rows or (), 1)])

    async def execute(self, statement: Statement, rows: Rows | None = None, /, **parameters: object) -> int:
        """Note it."""
        self._note(statement, rows, parameters)
        return len(rows or ())

    async def run(self, script: Script, inputs: Inputs, /, *, last: bool = False, **parameters: object) -> Returned:
        """Note it as the driver runs it: one statement on PostgreSQL, one for each step on SQLite."""
        if self.dialect is Dialect.POSTGRES:
            text = self._scripts.of(script, inputs, is_last=last)
            self.calls.append((text.sql, text.arguments(inputs, parameters)))
            rows = [list(row) for row in next(iter(inputs.values()))]
            return {step.name: rows for step in script.steps if step.is_output}
        relations: Returned = {name: [list(row) for row in rows] for name, rows in inputs.items()}
        for item in render_sqlite(script, self._now):
            arguments = [as_json(relations[name]) for name in item.relations]
            self.calls.append((item.sql, [*arguments, *(parameters[name] for name in item.parameters)]))
            relations[item.step.name] = _inserted(script, item.step, inputs)
        return {step.name: relations[step.name] for step in script.steps if step.is_output}

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Nothing is committed."""

    def notify(self, channel: str) -> None:
        """Nobody listens."""


def _inserted(script: Script, step: Step, inputs: Inputs) -> list[Any]:
    """Return what a step that inserts jobs returns: columns of its input, and the present time."""
    (name, rows), now_us = next(iter(inputs.items())), time.time_ns() // 1_000
    columns = {"job_id": "given_id", "job_priority": "given_priority"}
    order = list(script.inputs[name])
    return [
        [row[order.index(columns[column])] if column in columns else now_us for column in step.returns] for row in rows
    ]


async def recorded(recorder: RecordingTx, example: dict[str, Any], number: int, size: int) -> Calls:
    """What one transaction of ``size`` submissions runs."""
    items = []
    for at in range(size):
        source = str(example["source"]).replace(MARK.decode(), f"{number + at:010d}")
        data = source.encode()
        items.append(
            NewSubmission(
                id=new_id(),
                user_id=example["user_ids"][(number + at) % len(example["user_ids"])],
                problem_id=example["problem_id"],
                revision_id=example["revision_id"],
                language="cpp17",
                source_digest=hashlib.sha256(data).hexdigest(),
                source_bytes=len(data),
                timeout_ms=60_000,
                trace_id=new_id().replace("-", ""),
                source_text=source,
                job_id=new_id(),
            )
        )
    recorder.calls = []
    await SubmissionCommands(JobCommands({})).submit(recorder, items)
    return recorder.calls


class RawDriver(Protocol):
    """A way to commit."""

    async def commit(self, calls: Calls) -> None:
        """Run the statements in one transaction."""
        ...


class RawPostgres:
    """One connection."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection

    async def commit(self, calls: Calls) -> None:
        """Run the statements in one transaction."""
        async with self._connection.transaction():
            for text, arguments in calls:
                await self._connection.fetch(text, *arguments)


class RawSqlite:
    """The one writer, shared."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.create_function("raw_now", 0, lambda: time.time_ns() // 1_000)
        self._turn = asyncio.Lock()

    async def commit(self, calls: Calls) -> None:
        """Run the statements in one transaction, when it is one's turn."""
        async with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            for text, arguments in calls:
                self._connection.execute(text, arguments).fetchall()
            self._connection.execute("COMMIT")
            await asyncio.sleep(0)  # others may ask meanwhile

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


async def open_bare(url: str, connections: int, stack: AsyncExitStack) -> tuple[Sequence[RawDriver], RecordingTx]:
    """As many ways to commit as there are askers, and the recorder of their dialect."""
    path = sqlite_path(url)
    if path is not None:
        writer = RawSqlite(str(path))
        stack.callback(writer.close)
        return [writer] * connections, RecordingTx(Dialect.SQLITE, NOW)
    found = []
    for _ in range(connections):
        connection = await asyncpg.connect(url, server_settings=SESSION)
        stack.push_async_callback(connection.close)
        found.append(RawPostgres(connection))
    return found, RecordingTx(Dialect.POSTGRES, DATABASE_CLOCK)


async def commit_all(bares: Sequence[RawDriver], work: list[Calls]) -> dict[str, Any]:
    """Commit everything, as many at the same time as there are askers."""
    waits_ms: list[float] = []

    async def sender(bare: RawDriver) -> None:
        while work:
            calls = work.pop()
            began = time.perf_counter()
            await bare.commit(calls)
            waits_ms.append((time.perf_counter() - began) * 1_000)

    began = time.perf_counter()
    await asyncio.gather(*(sender(bare) for bare in bares))
    return {"seconds": time.perf_counter() - began, "waits_ms": waits_ms}


async def main(url: str, connections: int) -> None:
    number = 0
    async with AsyncExitStack() as stack:
        bares, recorder = await open_bare(url, connections, stack)
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            size, count, askers = command["size"], command["count"], command["askers"]
            work = [await recorded(recorder, command["example"], number + at * size, size) for at in range(count)]
            number += count * size
            print(json.dumps(await commit_all(bares[:askers], work)), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2])))
