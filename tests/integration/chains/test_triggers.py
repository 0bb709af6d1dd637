"""Triggers on both databases: every tick starts one run, with several schedulers and after missed ticks."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from adjudge.chains.triggers import TriggerCommands, TriggerScheduler, user_spec
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.chains import triggers as rows
from adjudge.store.engine.postgres import PostgresDatabase
from tests.support.store_harness import POSTGRES_NOW, StoreHarness, adhoc_statement

MINUTE_MS = 60_000
INSERT_RUN = adhoc_statement(
    "INSERT INTO chain_runs (id, number, chain_id, chain_version, idempotency_key, dag, parameters, trigger_kind,"
    " actor, created_at, updated_at) VALUES"
    " (:id, :number, :chain_id, 1, :key, '{}', :parameters, :kind, :actor, {now}, {now})"
)
NUMBERS = itertools.count(1)


async def add_chain(store: StoreHarness, name: str = "") -> str:
    chain_id = new_id()
    sql = "INSERT INTO chains (id, name, dag, created_at, updated_at) VALUES (:id, :name, '{}', {now}, {now})"
    await store.write(sql, id=chain_id, name=name or chain_id)
    return chain_id


async def start(
    tx: Tx,
    *,
    chain_id: str,
    parameters: Mapping[str, Any],
    idempotency_key: str,
    trigger_kind: str,
    actor: str,
    **_: Any,
) -> str:
    """A run without nodes: the unique key of its row refuses a second one."""
    if parameters.get("refuse"):
        raise Conflict("The chain is disabled; enable it first.")
    run_id = new_id()
    await tx.execute(
        INSERT_RUN,
        id=run_id,
        number=next(NUMBERS),
        chain_id=chain_id,
        key=idempotency_key,
        parameters=json.dumps(parameters),
        kind=trigger_kind,
        actor=actor,
    )
    return run_id


def scheduler(store: StoreHarness) -> TriggerScheduler:
    return TriggerScheduler(store.database, start, name="s1")


async def create(store: StoreHarness, kind: str, spec: Mapping[str, Any], chain_id: str = "", **fields: Any) -> str:
    chain = chain_id or await add_chain(store)
    created = await store.transact(
        lambda tx: TriggerCommands().create(
            tx, chain_id=chain, name=new_id(), kind=kind, spec=spec, actor="eva", **fields
        )
    )
    return created.trigger_id


async def fire(store: StoreHarness, event: str, key: str, payload: Mapping[str, Any]) -> int:
    return await store.transact(lambda tx: rows.fire_event(tx, event, payload, key=key))


async def runs(store: StoreHarness) -> list[dict[str, Any]]:
    return await store.rows("SELECT * FROM chain_runs ORDER BY idempotency_key")


async def test_schedule_ticks_once_for_each_due_time(store: StoreHarness) -> None:
    trigger = await create(store, "cron", {"cron": "*/10 * * * *", "parameters": {"at": "{{ trigger.due_ms }}"}})
    one = scheduler(store)
    assert await one.run_once() == 0
    for _ in range(3):
        await store.clock.advance(10 * MINUTE_MS)
        assert await one.run_once() == 1
        assert await one.run_once() == 0
    found = await runs(store)
    assert {row["trigger_kind"] for row in found} == {"cron"}
    assert {row["actor"] for row in found} == {f"trigger:{trigger}"}
    due_ms = [json.loads(row["parameters"])["at"] for row in found]
    assert [later - earlier for earlier, later in itertools.pairwise(due_ms)] == [10 * MINUTE_MS] * 2
    assert [f"{trigger}:{timestamp * 1000}" for timestamp in due_ms] == [row["idempotency_key"] for row in found]


@pytest.mark.parametrize(("misfire", "wanted"), [("skip", 0), ("once", 1), ("all", 6)])
async def test_downtime_follows_the_misfire_rule(store: StoreHarness, misfire: str, wanted: int) -> None:
    await create(store, "cron", {"cron": "*/10 * * * *", "misfire": misfire, "grace_sec": 1})
    await store.clock.advance(61 * MINUTE_MS)
    assert await scheduler(store).run_once() == wanted
    await store.clock.advance(10 * MINUTE_MS - 1)
    assert await scheduler(store).run_once() == (0 if misfire == "skip" else 1)


async def test_many_schedulers_start_one_run_a_tick(postgres_store: StoreHarness) -> None:
    """Four schedulers, each with connections of its own, over many ticks of many triggers, events among them."""
    store = postgres_store
    chain = await add_chain(store)
    for minutes in (1, 2, 3):
        await create(store, "cron", {"cron": f"*/{minutes} * * * *", "misfire": "all"}, chain)
    await create(store, "event", {"event": "problem.published"}, chain)
    others = [await PostgresDatabase.open(store.url, now=POSTGRES_NOW) for _ in range(3)]
    try:
        schedulers = [TriggerScheduler(database, start, name="s") for database in (store.database, *others)]
        for number in range(12):
            await store.clock.advance(MINUTE_MS)
            await fire(store, rows.PROBLEM_PUBLISHED, str(number), {})
            await asyncio.gather(*(item.run_once() for item in schedulers))
    finally:
        for database in others:
            await database.close()
    ticks = await store.rows("SELECT state, run_id FROM chain_trigger_ticks")
    assert {row["state"] for row in ticks} == {"started"}
    assert len({row["run_id"] for row in ticks}) == len(ticks) == len(await runs(store))
    kinds = Counter(row["trigger_kind"] for row in await runs(store))
    assert kinds == {"cron": 12 + 6 + 4, "event": 12}


async def test_a_delay_fires_once_however_late(store: StoreHarness) -> None:
    await create(store, "delay", {"after_sec": 90})
    await create(store, "delay", {"at": "2023-11-14T22:14:20+00:00"})  # a minute after the clock's start
    await store.clock.advance(30_000)
    assert await scheduler(store).run_once() == 0
    await store.clock.advance(48 * 60 * MINUTE_MS)
    assert await scheduler(store).run_once() == 2
    await store.clock.advance(48 * 60 * MINUTE_MS)
    assert await scheduler(store).run_once() == 0


async def test_events_tick_who_listens_and_only_if_they_happen(store: StoreHarness) -> None:
    spec = {"event": "problem.published", "filter": {"slug": ["sum", "tree"]}}
    await create(store, "event", {**spec, "parameters": {"p": "{{ event.slug }}"}})
    await create(store, "event", {"event": "rejudge.applied"})
    await create(store, "event", spec, enabled=False)

    async def happen(tx: Tx, key: str, problem: str) -> int:
        return await rows.fire_event(tx, rows.PROBLEM_PUBLISHED, {"slug": problem}, key=key)

    async def happen_not(tx: Tx) -> None:
        await happen(tx, "k0", "sum")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.transact(happen_not)
    assert await store.transact(lambda tx: happen(tx, "k1", "sum")) == 1
    assert await store.transact(lambda tx: happen(tx, "k1", "sum")) == 1  # the same event, published twice
    assert await store.transact(lambda tx: happen(tx, "k2", "other")) == 0
    assert await scheduler(store).run_once() == 1
    (run,) = await runs(store)
    assert json.loads(run["parameters"]) == {"p": "sum"}


async def test_a_chain_after_a_chain(store: StoreHarness) -> None:
    first, second, third = [await add_chain(store) for _ in range(3)]
    await create(store, "chain", {"chain_id": first}, second)
    await create(store, "chain", {"chain_id": first, "on": "failure"}, third)
    for key, status in (("r1", "success"), ("r2", "failed")):
        payload = {"chain_id": first, "run_id": key, "status": status}
        await fire(store, rows.CHAIN_FINISHED, key, payload)
    assert await scheduler(store).run_once() == 2
    assert {row["chain_id"] for row in await runs(store)} == {second, third}
    with pytest.raises(InvalidInput, match="trigger cycle"):
        await create(store, "chain", {"chain_id": second}, first)
    with pytest.raises(InvalidInput, match="trigger cycle"):
        await create(store, "chain", {"chain_id": first}, first)


async def test_a_chain_is_watched_by_its_name_too(store: StoreHarness) -> None:
    first, second = await add_chain(store, "first"), await add_chain(store)
    trigger_id = await create(store, "chain", {"chain_id": "first"}, second)
    await fire(store, rows.CHAIN_FINISHED, "r1", {"chain_id": first, "run_id": "r1", "status": "success"})
    assert await scheduler(store).run_once() == 1
    assert user_spec(await store.transact(lambda tx: rows.find(tx, trigger_id))) == {"chain_id": "first"}, (
        "as it was written"
    )
    with pytest.raises(InvalidInput, match="trigger cycle"):
        await create(store, "chain", {"chain_id": second}, first)


async def test_a_webhook_asks_for_its_secret(store: StoreHarness) -> None:
    chain, triggers = await add_chain(store), TriggerCommands()
    created = await store.transact(
        lambda tx: triggers.create(tx, chain_id=chain, name="hook", kind="webhook", spec={}, actor="eva")
    )
    secret = created.secret or ""
    stored = await store.row("SELECT * FROM chain_triggers")
    assert len(secret) > 40
    assert secret not in json.dumps(stored)

    async def call(given: str, key: str | None = None, trigger: str = created.trigger_id) -> str:
        return await store.transact(
            lambda tx: triggers.handle_webhook_call(tx, trigger, secret=given, key=key, payload={"n": 1})
        )

    for wrong in ("", "x", secret[:-1], secret + "x", stored["secret_hash"]):
        with pytest.raises(NotFound):
            await call(wrong)
    with pytest.raises(NotFound):
        await call(secret, trigger=await create(store, "cron", {"cron": "0 0 1 1 *"}))
    assert await call(secret, "mine") == await call(secret, "mine")
    await call(secret)
    assert await scheduler(store).run_once() == 2
    assert {row["parameters"] for row in await runs(store)} <= {'{"n": 1}'}


async def test_a_tick_that_cannot_start_says_why_and_holds_up_nobody(store: StoreHarness) -> None:
    bad = await create(store, "delay", {"after_sec": 1, "parameters": {"refuse": True}})
    await create(store, "delay", {"after_sec": 2})
    await store.clock.advance(5_000)
    assert await scheduler(store).run_once() == 1
    (tick,) = await store.rows("SELECT * FROM chain_trigger_ticks WHERE trigger_id = :id", id=bad)
    assert (tick["state"], tick["error"]) == ("failed", "The chain is disabled; enable it first.")
    assert (await store.transact(lambda tx: rows.find(tx, bad))).last_error == tick["error"]


async def test_a_broken_trigger_is_disabled_and_holds_up_nobody(store: StoreHarness) -> None:
    broken = await create(store, "cron", {"cron": "* * * * *"})
    await create(store, "cron", {"cron": "* * * * *"})
    spec = json.dumps({"cron": "* * * * *", "timezone": "Gone/Away"})
    await store.write("UPDATE chain_triggers SET spec = :spec WHERE id = :id", spec=spec, id=broken)
    await store.clock.advance(MINUTE_MS)
    assert await scheduler(store).run_once() == 1
    current = await store.transact(lambda tx: rows.find(tx, broken))
    assert not current.enabled
    assert "no time zone 'Gone/Away'" in (current.last_error or "")


async def test_a_fault_in_starting_is_kept_with_the_tick(store: StoreHarness) -> None:
    trigger = await create(store, "delay", {"after_sec": 0})
    await store.clock.advance(1)

    async def fall(tx: Tx, **_: Any) -> str:
        raise ZeroDivisionError("ours")

    assert await TriggerScheduler(store.database, fall, name="s1").run_once() == 0
    (tick,) = await store.rows("SELECT * FROM chain_trigger_ticks WHERE trigger_id = :id", id=trigger)
    assert (tick["state"], tick["error"]) == ("failed", "ours")


async def test_a_disabled_trigger_makes_up_for_nothing(store: StoreHarness) -> None:
    trigger_id = await create(store, "cron", {"cron": "*/10 * * * *", "misfire": "all"})
    triggers = TriggerCommands()
    paused = await store.transact(lambda tx: triggers.update(tx, trigger_id, version=1, enabled=False))
    await store.clock.advance(60 * MINUTE_MS)
    assert await scheduler(store).run_once() == 0
    await store.transact(lambda tx: triggers.update(tx, trigger_id, version=paused.version, enabled=True))
    assert await scheduler(store).run_once() == 0
    await store.clock.advance(10 * MINUTE_MS)
    assert await scheduler(store).run_once() == 1
    with pytest.raises(Conflict):
        await store.transact(lambda tx: triggers.update(tx, trigger_id, version=1, enabled=False))


async def test_what_could_never_fire_is_refused(store: StoreHarness) -> None:
    chain = await add_chain(store)
    wrong: list[tuple[str, Mapping[str, Any], str]] = [
        ("often", {}, "there is no trigger 'often'"),
        ("cron", {"cron": "0 0 * *"}, "spec.cron"),
        ("cron", {"cron": "* * * * *", "misfires": "all"}, "did you mean 'misfire'"),
        ("cron", {"cron": "* * * * *", "misfire": "twice"}, "choose one of skip, once, all"),
        ("delay", {}, "give exactly one of at, after_sec"),
        ("delay", {"at": "0001-01-01T00:00:00+14:00"}, "spec.at: .* is out of range"),
        ("delay", {"at": "9999-12-31T23:59:59-01:00"}, "spec.at: .* is out of range"),
        ("event", {"event": "sunrise"}, "choose one of problem.published"),
        ("event", {"event": "contest.ended", "filter": {"slug": "x"}}, "has no 'slug'; it has contest_id, contest"),
        ("event", {"event": "contest.ended", "filter": {"contest": {}}}, "spec.filter.contest"),
        ("webhook", {"parameters": {"a": "{{ artifacts.x }}"}}, "there is no 'artifacts' here"),
        ("chain", {}, "'chain_id' is missing"),
        ("chain", {"chain_id": "ghost"}, "spec.chain_id: there is no chain 'ghost'; define it first"),
    ]
    for kind, spec, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            await create(store, kind, spec, chain)
    await store.transact(
        lambda tx: TriggerCommands().create(tx, chain_id=chain, name="n", kind="webhook", spec={}, actor="eva")
    )
    with pytest.raises(Conflict, match="trigger of that name"):
        await store.transact(
            lambda tx: TriggerCommands().create(tx, chain_id=chain, name="n", kind="webhook", spec={}, actor="eva")
        )


async def test_the_loop_wakes_for_an_event(store: StoreHarness) -> None:
    await create(store, "event", {"event": "problem.published"})
    ticked = asyncio.Event()

    async def notice(tx: Tx, **fields: Any) -> str:
        run_id = await start(tx, **fields)
        tx.on_commit(ticked.set)
        return run_id

    running = asyncio.create_task(TriggerScheduler(store.database, notice, name="s1").run())
    try:
        await fire(store, rows.PROBLEM_PUBLISHED, "k", {})
        async with asyncio.timeout(240):
            await ticked.wait()
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
