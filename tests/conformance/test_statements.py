"""What every driver promises about statements, and what the store promises about its own."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from itertools import product

import pytest

from adjudge import store as store_package
from adjudge.store import Tx
from adjudge.store.engine.columns import METADATA
from adjudge.store.engine.postgres_pool import STATEMENT_BYTES
from adjudge.store.engine.script import Script, render_postgres, render_sqlite
from adjudge.store.engine.statement import Dialect, Row, Rows, Statement, render
from tests.support.store_harness import POSTGRES_NOW, StoreHarness, adhoc_statement

TYPES = {
    "given_text": "text",
    "given_number": "bigint",
    "given_real": "double precision",
    "given_flag": "boolean",
    "given_document": "jsonb",
}
ECHO = Statement("test.echo", "Echo the rows.", f"SELECT {', '.join(TYPES)} FROM {{given}}", input_columns=TYPES)


def all_statements() -> list[Statement]:
    found: dict[int, Statement] = {}
    for module in pkgutil.walk_packages(store_package.__path__, "adjudge.store."):
        if not module.ispkg and not module.name.endswith(".env"):  # Alembic's env runs only inside Alembic
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Statement):
                    found[id(value)] = value
    return sorted(found.values(), key=lambda statement: statement.name)


def all_scripts() -> list[Script]:
    found: dict[int, Script] = {}
    for module in pkgutil.walk_packages(store_package.__path__, "adjudge.store."):
        if not module.ispkg and not module.name.endswith(".env"):  # Alembic's env runs only inside Alembic
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Script):
                    found[id(value)] = value
    return sorted(found.values(), key=lambda script: script.name)


async def echo(store: StoreHarness, rows: Rows) -> list[Row]:
    return await store.database.read(lambda tx: tx.fetch(ECHO, rows))


async def test_no_rows_are_no_rows(store: StoreHarness) -> None:
    assert await echo(store, []) == []


async def test_null_is_null_in_every_type(store: StoreHarness) -> None:
    (row,) = await echo(store, [(None, None, None, None, None)])
    assert [row[name] for name in TYPES] == [None] * 5


async def test_values_come_back_as_they_went(store: StoreHarness) -> None:
    document = {"deep": [1, None, {"ключ": "значение"}], "quote": "'\"\\"}
    text = "née Straße 判题 \U0001f9ee 'quoted' \"twice\" \\ \n\t :name {given} $1 ?1"
    (row,) = await echo(store, [(text, 2**53 + 1, 0.1, True, json.dumps(document))])
    assert (row["given_text"], row["given_number"], row["given_real"]) == (text, 2**53 + 1, 0.1)
    assert bool(row["given_flag"]) is True
    assert json.loads(row["given_document"]) == document


async def test_a_single_row_comes_back_as_it_went_in_every_type(store: StoreHarness) -> None:
    """It travels another way than two do, and must come to the same."""
    rows = [("one", 1, 0.5, True, '{"a": [1]}'), ("two", 2, -0.5, False, "[]"), (None, None, None, None, None)]
    for row in rows:
        (alone,), (first, *_) = await echo(store, [row]), await echo(store, [row, *rows])
        assert [alone[name] for name in TYPES] == [first[name] for name in TYPES]


async def test_five_thousand_rows_travel_together(store: StoreHarness) -> None:
    rows = [(f"row {number}", number, number / 2, number % 2 == 0, "{}") for number in range(5_000)]
    found = await echo(store, rows)
    assert sorted(row["given_number"] for row in found) == list(range(5_000))


async def test_the_clock_stands_still_within_a_statement_and_is_the_tests_own(store: StoreHarness) -> None:
    now = Statement("test.now", "Read the clock twice.", "SELECT {now} AS a, {now} AS b")
    (first,) = await store.database.read(lambda tx: tx.fetch(now))
    await store.clock.advance(ms=5)
    (second,) = await store.database.read(lambda tx: tx.fetch(now))
    assert first["a"] == first["b"] == store.clock.now_us - 5_000
    assert second["a"] == store.clock.now_us


async def test_one_parameter_may_stand_in_several_places(store: StoreHarness) -> None:
    twice = adhoc_statement("SELECT CAST(:one AS bigint) + CAST(:two AS bigint) + CAST(:one AS bigint) AS n")
    (row,) = await store.database.read(lambda tx: tx.fetch(twice, one=1, two=10))
    assert row["n"] == 12


async def test_execute_tells_how_many_rows_changed(store: StoreHarness) -> None:
    await store.enqueue_many(3)
    assert await store.write("UPDATE jobs SET trace_id = 'x' WHERE priority = 2") == 3
    assert await store.write("UPDATE jobs SET trace_id = 'x' WHERE priority = 9") == 0


async def test_a_statement_on_rows_asks_for_them(store: StoreHarness) -> None:
    with pytest.raises(TypeError):
        await store.database.read(lambda tx: tx.fetch(ECHO))


def test_every_statement_has_a_name_and_a_purpose_of_its_own() -> None:
    statements: list[Statement | Script] = [*all_statements(), *all_scripts()]
    assert len(statements) > 200
    assert [name for name, count in Counter(item.name for item in statements).items() if count > 1] == []
    assert [purpose for purpose, count in Counter(item.purpose for item in statements).items() if count > 1] == []
    for statement in statements:
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+", statement.name), statement.name
        assert statement.purpose.endswith("."), statement.name
        assert "\n" not in statement.purpose


async def test_every_statement_can_be_planned(store: StoreHarness) -> None:
    """The database itself reads every text: names of columns, types of parameters, legal syntax."""
    errors = {}
    for statement in all_statements():
        if statement.only_dialect in (None, store.dialect):  # the other database does the same by other statements
            try:
                await store.transact(partial(_plan, statement, store.dialect))
            except Exception as error:  # noqa: BLE001  # whatever a driver raises, the other statements are read too
                errors[statement.name] = str(error)
    assert errors == {}


async def _plan(statement: Statement, dialect: Dialect, tx: Tx) -> None:
    for is_single in {False, bool(statement.input_columns)}:
        sql = render(statement, dialect, POSTGRES_NOW if dialect is Dialect.POSTGRES else "0", is_single=is_single).sql
        if dialect is Dialect.POSTGRES:
            await tx.execute(adhoc_statement(f"PREPARE planned AS {sql}"))
            await tx.execute(adhoc_statement("DEALLOCATE planned"))
        else:
            sql = re.sub(r"\?1\b", "'[]'", sql) if statement.input_columns and not is_single else sql
            await tx.fetch(adhoc_statement("EXPLAIN " + re.sub(r"\?\d+", "NULL", sql)))


async def test_every_script_can_be_planned(store: StoreHarness) -> None:
    for script in all_scripts():
        await store.transact(partial(_plan_script, script, store.dialect))


async def _plan_script(script: Script, dialect: Dialect, tx: Tx) -> None:
    if dialect is Dialect.POSTGRES:
        for singles in product((False, True), repeat=len(script.inputs)):
            for is_last in (False, True):
                sql = render_postgres(script, POSTGRES_NOW, singles, is_last=is_last).sql
                await tx.execute(adhoc_statement(f"PREPARE planned AS {sql}"))
                await tx.execute(adhoc_statement("DEALLOCATE planned"))
        return
    for step in render_sqlite(script, "0"):
        await tx.fetch(adhoc_statement("EXPLAIN " + re.sub(r"\?\d+", "NULL", step.sql)))


WHOLE_TABLE = {
    "blob_references.chain_nodes_artifact_digest": "garbage collection, by hand: asks every run what it holds",
    "rejudge.select_by_filter": "pages through submissions by id, to compose a batch",
}
"""Statements that may read a large table from one end to the other, and why."""

LARGE = {
    *("jobs", "job_attempts", "job_status_log", "job_progress", "outbox", "dead_letters"),
    *("submissions", "submission_status_log", "case_results", "source_texts", "executions", "execution_runs"),
    "evaluation_items",
    *("chain_runs", "chain_nodes", "chain_node_logs", "chain_status_log", "chain_checkpoints"),
    *("rejudge_items", "webhook_deliveries", "audit_log"),
    *("contest_submissions", "participants", "participant_members", "scoreboard_cells", "scoreboard_rows"),
    *("scoreboard_log", "clarifications", "balloons", "teams", "team_members"),
}


def test_no_statement_reads_a_large_table_whole(sqlite_url: str) -> None:
    """Without statistics too, as on SQLite: what a background loop reads twice a second must not grow with history.

    A partial index may be read whole: it holds what is under way, and rows leave it. Foreign keys are off: with them,
    plans of inserts mention looks at children that are taken only while a violation is open.
    """
    assert {table.name for table in METADATA.sorted_tables} >= LARGE
    partial_indexes = {
        index.name
        for table in METADATA.sorted_tables
        for index in table.indexes
        if index.dialect_options["sqlite"]["where"] is not None
    }
    found = {}
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        for statement in all_statements():
            if statement.only_dialect in (None, Dialect.SQLITE):
                scans = _scans(connection, statement)
                if any(table in LARGE and index not in partial_indexes for table, index in scans):
                    found[statement.name] = scans
        for script in all_scripts():
            for step in render_sqlite(script, "0"):
                scans = _scanned(connection, [step.sql])
                if any(table in LARGE and index not in partial_indexes for table, index in scans):
                    found[f"{script.name}.{step.step.name}"] = scans
    assert found.keys() == WHOLE_TABLE.keys(), found


def _scans(connection: sqlite3.Connection, statement: Statement) -> list[tuple[str, str]]:
    """Tables that SQLite would read from end to end, each with the index that it would do so by."""
    return _scanned(
        connection, {render(statement, Dialect.SQLITE, "0", is_single=is_single).sql for is_single in (False, True)}
    )


def _scanned(connection: sqlite3.Connection, texts: Iterable[str]) -> list[tuple[str, str]]:
    plans = [connection.execute("EXPLAIN QUERY PLAN " + re.sub(r"\?\d+", "NULL", sql)) for sql in texts]
    plan = "\n".join(row[3] for rows in plans for row in rows)
    return re.findall(r"^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", plan, re.MULTILINE)


BY_KEY = [
    statement
    for statement in all_statements()
    if statement.input_columns
    and statement.name != "jobs.find_deduped"
    and statement.only_dialect is not Dialect.SQLITE
]


async def test_input_rows_are_looked_up_by_key(postgres_store: StoreHarness) -> None:
    """On an empty table already: a session keeps its plans, and the table grows under them."""
    plans = {
        (statement.name, is_single): await postgres_store.transact(partial(_explain, statement, is_single))
        for statement in BY_KEY
        for is_single in (False, True)
    }
    assert {name: plan for name, plan in plans.items() if "Seq Scan" in plan} == {}
    other_keys = re.compile("using (jobs_(running|queued|waiting)|outbox_turn)")
    assert {name: plan for name, plan in plans.items() if other_keys.search(plan)} == {}


async def test_scripts_look_rows_up_by_key(postgres_store: StoreHarness) -> None:
    """Of every relation of a script, however many rows it has: a wrong estimate must not make it read a table."""
    plans = {}
    for script in all_scripts():
        for singles in product((False, True), repeat=len(script.inputs)):
            rendered = render_postgres(script, "0", singles, is_last=True)
            count = sum(len(columns) for columns in script.inputs.values()) + len(rendered.parameters)
            plans[script.name, singles] = await postgres_store.transact(partial(_explain_text, rendered.sql, count))
    assert {name: plan for name, plan in plans.items() if "Seq Scan" in plan} == {}
    other_keys = re.compile("using (jobs_(running|queued|waiting))")
    assert {name: plan for name, plan in plans.items() if other_keys.search(plan)} == {}


async def _explain(statement: Statement, is_single: bool, tx: Tx) -> str:
    """How PostgreSQL would go about a statement."""
    rendered = render(statement, Dialect.POSTGRES, "0", is_single=is_single)
    return await _explain_text(rendered.sql, rendered.column_count + len(rendered.parameters), tx)


async def _explain_text(sql: str, arguments: int, tx: Tx) -> str:
    """How PostgreSQL would go about it.

    The planner is made to forget what it may have counted meanwhile: autovacuum passes by when it likes, and of a table
    that it met with a few rows in one page, the planner would read that page.
    """
    nulls = ", ".join(["NULL"] * arguments)
    await tx.execute(
        adhoc_statement("UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE relkind = 'r' AND oid >= 16384")
    )
    await tx.execute(adhoc_statement("DELETE FROM pg_statistic WHERE starelid >= 16384"))
    await tx.execute(adhoc_statement("SET LOCAL plan_cache_mode = force_generic_plan"))
    await tx.execute(adhoc_statement(f"PREPARE explained AS {sql}"))
    rows = await tx.fetch(adhoc_statement(f"EXPLAIN EXECUTE explained{f'({nulls})' if nulls else ''}"))
    await tx.execute(adhoc_statement("DEALLOCATE explained"))
    return "\n".join(row["QUERY PLAN"] for row in rows)


def test_scripts_stay_prepared() -> None:
    """asyncpg parses and plans a text beyond its limit anew at every call, which halves the rate of chain steps."""
    for script in all_scripts():
        for singles in ([True] * len(script.inputs), [False] * len(script.inputs)):
            for is_last in (True, False):
                sql = render_postgres(script, POSTGRES_NOW, tuple(singles), is_last=is_last).sql
                assert len(sql.encode()) < STATEMENT_BYTES
