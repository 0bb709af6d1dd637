"""What every driver promises about scripts: steps that read rows which earlier steps returned."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from adjudge.domain.errors import Conflict, InternalFault
from adjudge.store import Tx
from adjudge.store.engine.script import Inputs, Returned, Script, Step
from tests.conformance.test_transactions import add, names
from tests.support.store_harness import StoreHarness, adhoc_statement

RENAMED = Step(
    "renamed",
    """
    UPDATE users SET name = new_name FROM {change} WHERE users.name = old_name
    RETURNING users.id AS id, users.name AS name
    """,
    ("id", "name"),
    carries="change",
    key=(("name", "new_name"),),
)


def script(complete: str = "", *, name: str = "test.rename") -> Script:
    """Renames users, and counts those renamed."""
    counted = Step(
        "counted",
        "SELECT count(*) AS number, min(old_name) AS first_old FROM {renamed} WHERE is_counted = :counted",
        ("number", "first_old"),
        after="renamed",
    )
    inputs = {"change": {"old_name": "text", "new_name": "text", "is_counted": "bigint"}}
    return Script(name, "Rename users and count them.", inputs, (RENAMED, counted), complete)


def changes(*pairs: tuple[str, str]) -> Inputs:
    return {"change": [(old, new, number % 2) for number, (old, new) in enumerate(pairs)]}


async def renamed(tx: Tx, item: Script, inputs: Inputs, *, last: bool = False) -> Returned:
    return await tx.run(item, inputs, last=last, counted=0)


@pytest.mark.parametrize("last", [False, True])
async def test_step_reads_what_an_earlier_step_returned_and_carried(store: StoreHarness, last: bool) -> None:
    for name in ("ada", "bea", "cyd"):
        await store.transact(partial(add, name=name))
    inputs = changes(("ada", "a"), ("nobody", "n"), ("cyd", "c"))
    found = await store.transact(lambda tx: renamed(tx, script(), inputs, last=last))
    assert sorted(row[1:] for row in found["renamed"]) == [["a"], ["c"]]
    assert found["counted"] == [[2, "ada"]]
    assert await names(store) == ["a", "bea", "c"]


async def test_single_row_gives_the_same_as_many(store: StoreHarness) -> None:
    await store.transact(partial(add, name="ada"))
    found = await store.transact(lambda tx: renamed(tx, script(), changes(("ada", "a"))))
    assert [row[1:] for row in found["renamed"]] == [["a"]]
    assert found["counted"] == [[1, "ada"]]


async def test_no_rows_change_nothing(store: StoreHarness) -> None:
    await store.transact(partial(add, name="ada"))
    found = await store.transact(lambda tx: renamed(tx, script(), changes()))
    assert found["renamed"] == []
    assert await names(store) == ["ada"]


async def test_step_reads_only_the_rows_that_it_selects(store: StoreHarness) -> None:
    for name in ("ada", "bea", "cyd"):
        await store.transact(partial(add, name=name))
    chosen = Step("chosen", "SELECT id, name FROM {renamed}", ("id", "name"), only=("old_name", "cyd"), after="renamed")
    item = Script("test.choose", "Rename users and select one.", script().inputs, (RENAMED, chosen))
    found = await store.transact(lambda tx: tx.run(item, changes(("ada", "a"), ("cyd", "c"))))
    assert [row[1] for row in found["chosen"]] == ["c"]
    found = await store.transact(lambda tx: tx.run(item, changes(("bea", "b"))))
    assert found["chosen"] == []


async def test_step_that_is_no_output_is_not_returned(store: StoreHarness) -> None:
    quiet = Script("test.quiet", "Return nothing.", {}, (Step("one", "SELECT 1 AS n", ("n",), is_output=False),))
    assert await store.transact(lambda tx: tx.run(quiet, {})) == {}


async def test_failed_script_dooms_its_transaction(store: StoreHarness) -> None:
    await store.transact(partial(add, name="ada"))
    await store.transact(partial(add, name="bea"))

    async def swallow(tx: Tx) -> None:
        await add(tx, "cyd")
        with suppress(Conflict):
            await renamed(tx, script(), changes(("ada", "bea")))

    with pytest.raises(Conflict):
        await store.transact(swallow)
    with pytest.raises(Conflict):
        await store.transact(lambda tx: renamed(tx, script(), changes(("ada", "bea")), last=True))
    assert await names(store) == ["ada", "bea"]


async def test_nothing_may_follow_the_last_script(store: StoreHarness) -> None:
    async def not_the_last(tx: Tx) -> None:
        await renamed(tx, script(), changes(("ada", "bea")), last=True)
        await add(tx, "fay")

    with pytest.raises(InternalFault, match="has committed"):
        await store.transact(not_the_last)


ALL_RENAMED = "(SELECT count(*) FROM {renamed}) = (SELECT count(*) FROM {change})"


@pytest.mark.parametrize("pairs", [[("ada", "a")], [("ada", "a"), ("nobody", "n")]])
async def test_incomplete_script_is_run_again_and_may_be_followed(
    store: StoreHarness, pairs: list[tuple[str, str]]
) -> None:
    """What it decides to do afterwards comes from the rows: a complete script leaves nothing to do."""
    await store.transact(partial(add, name="ada"))
    committed: list[str] = []

    async def operation(tx: Tx) -> int:
        tx.on_commit(lambda: committed.append("once"))
        item = script(ALL_RENAMED, name="test.complete")
        missing = len(pairs) - len((await renamed(tx, item, changes(*pairs), last=True))["renamed"])
        for _ in range(missing):
            await add(tx, "late")
        return missing

    assert await store.transact(operation) == len(pairs) - 1
    assert await names(store) == ["a", "late"][: len(pairs)]
    assert committed == ["once"]


async def test_script_behind_another_statement_shares_its_transaction(store: StoreHarness) -> None:
    async def operation(tx: Tx) -> None:
        await add(tx, "ada")
        await renamed(tx, script(ALL_RENAMED, name="test.complete"), changes(("ada", "a")), last=True)
        raise RuntimeError("undone")

    with pytest.raises(RuntimeError, match="undone"):
        await store.transact(operation)
    assert await names(store) == []


async def test_concurrent_scripts_decide_from_the_latest_rows(postgres_store: StoreHarness) -> None:
    """An UPDATE that waited sees what the other one committed, although both began with the same snapshot."""
    store = postgres_store
    await store.transact(partial(add, name="ada"))
    item = script(ALL_RENAMED, name="test.complete")
    held, waiting = asyncio.Event(), asyncio.Event()

    async def first(tx: Tx) -> None:
        await renamed(tx, item, changes(("ada", "a")))
        held.set()
        await waiting.wait()

    async def until_blocked() -> None:
        blocked = adhoc_statement(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        while not (await store.database.read(lambda tx: tx.fetch(blocked)))[0]["n"]:
            await asyncio.sleep(0)
        waiting.set()

    task = asyncio.create_task(store.transact(first))
    await held.wait()
    second, _ = await asyncio.gather(
        store.transact(lambda tx: renamed(tx, item, changes(("ada", "b")), last=True)), until_blocked()
    )
    await task
    assert second["renamed"] == []
    assert await names(store) == ["a"]
