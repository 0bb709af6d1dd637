"""Plans of the solved marks and statistics of problem lists: one index scan, for any number of submissions."""

from __future__ import annotations

import re

import pytest

from adjudge.store import Tx
from adjudge.store.engine.statement import Dialect, Statement, render
from adjudge.store.problems.queries import LIST_NEWEST
from adjudge.store.problems.stats import COUNT_BY_PROBLEM, SELECT_USER_STATUS
from tests.support.store_harness import StoreHarness, adhoc_statement


@pytest.mark.parametrize(
    "statement", [LIST_NEWEST, COUNT_BY_PROBLEM, SELECT_USER_STATUS], ids=lambda statement: statement.name
)
async def test_problem_status_and_stats_read_only_an_index(store: StoreHarness, statement: Statement) -> None:
    """However many submissions there are: lists read the status with every row, pages for one, stats count all."""
    rendered = render(statement, store.dialect, "0")
    if store.dialect is Dialect.SQLITE:
        sql = re.sub(r"\?\d+", "NULL", rendered.sql)
        rows = await store.transact(lambda tx: tx.fetch(adhoc_statement(f"EXPLAIN QUERY PLAN {sql}")))
        plan = [row["detail"] for row in rows if "submissions" in row["detail"]]
        assert plan, rows
        assert all("USING COVERING INDEX submissions_judged" in step for step in plan), plan
        return

    async def explain(tx: Tx) -> str:
        await tx.execute(
            adhoc_statement("SET LOCAL enable_seqscan = off")
        )  # the tables are empty, and pages cost more than that
        await tx.execute(adhoc_statement("SET LOCAL plan_cache_mode = force_generic_plan"))
        await tx.execute(adhoc_statement(f"PREPARE explained AS {rendered.sql}"))
        nulls = f"({', '.join(['NULL'] * len(rendered.parameters))})" if rendered.parameters else ""
        rows = await tx.fetch(adhoc_statement(f"EXPLAIN EXECUTE explained{nulls}"))
        await tx.execute(adhoc_statement("DEALLOCATE explained"))
        return "\n".join(row["QUERY PLAN"] for row in rows)

    text = await store.transact(explain)
    steps = [line for line in text.splitlines() if " on submissions" in line]
    assert steps, text
    assert all("Index Only Scan using submissions_judged" in step for step in steps), text
