"""The scheduler announces transitions of contests once, retracts those that move into the future, ticks triggers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from adjudge.chains.triggers import TriggerCommands
from adjudge.contests import lifecycle
from adjudge.domain.ids import new_id
from adjudge.relay.contest_announcer import ContestAnnouncer
from adjudge.store import Tx
from adjudge.store.chains import definitions
from adjudge.store.contests import queries
from adjudge.store.engine.statement import Statement
from tests.support.contest_fixture import MINUTE_US, ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import NOON_US, StoreHarness

TICKS = Statement("test.ticks", "Asked by a test.", "SELECT payload FROM chain_trigger_ticks ORDER BY due_at, tick")
EVENTS = ("contest.started", "contest.frozen", "contest.ended", "contest.thawed", "contest.finalized")


async def listen_for_events(store: StoreHarness, *events: str, only: str | None = None) -> None:
    """Create an event trigger for each event."""
    chain = await store.transact(
        lambda tx: definitions.create(tx, name=new_id(), dag={"nodes": [{"id": "n", "type": "noop"}]}, actor="eva")
    )
    commands = TriggerCommands()

    async def operation(tx: Tx) -> None:
        for event in events:
            spec = {"event": event} if only is None else {"event": event, "filter": {"contest_id": only}}
            await commands.create(tx, chain_id=chain.id, name=event, kind="event", spec=spec, actor="eva")

    await store.transact(operation)


async def announced(contest: ContestFixture) -> list[str]:
    rows = await contest.store.database.read(lambda tx: queries.announced(tx, [contest.contest_id]))
    return [row.transition for row in rows]


async def ticks(store: StoreHarness) -> list[str]:
    """The events that ticked triggers, in the order in which they were due."""
    rows = await store.database.read(lambda tx: tx.fetch(TICKS))
    return [str(event) for row in rows for event in EVENTS if f'"{event}"' in str(row["payload"]).replace("'", '"')]


async def test_every_transition_is_announced_once(store: StoreHarness) -> None:
    contest = await make_contest(store, settings=icpc_settings(starts_at=NOON_US + 10 * MINUTE_US))
    await listen_for_events(store, *EVENTS)
    announcer = ContestAnnouncer(store.database)
    assert await announcer.run_once() == 0
    await store.clock.advance(15 * 60_000)
    assert await announcer.run_once() == 1
    assert await announcer.run_once() == 0
    assert await ticks(store) == ["contest.started"]
    await store.clock.advance(300 * 60_000)
    assert await asyncio.gather(*(ContestAnnouncer(store.database).run_once() for _ in range(2))) in (
        [2, 0],
        [0, 2],
        [1, 1],
    )
    assert await ticks(store) == ["contest.started", "contest.frozen", "contest.ended"]
    await contest.transact(lambda tx: lifecycle.finalize(tx, contest.contest_id, actor="eva", reason=""))
    await store.clock.advance(1_000)
    await contest.transact(lambda tx: lifecycle.thaw(tx, contest.contest_id, actor="eva", reason=""))
    await store.clock.advance(1_000)
    assert await announcer.run_once() == 2
    assert await announced(contest) == ["start", "freeze", "end", "finalize", "thaw"]
    assert await ticks(store) == [
        "contest.started",
        "contest.frozen",
        "contest.ended",
        "contest.finalized",
        "contest.thawed",
    ]


async def test_moved_timeline_retracts_and_announces_again(store: StoreHarness) -> None:
    contest = await make_contest(store, settings=icpc_settings(freeze_ct_us=None))
    await listen_for_events(store, "contest.ended")
    announcer = ContestAnnouncer(store.database)
    await store.clock.advance(301 * 60_000)
    await announcer.run_once()
    assert await announced(contest) == ["start", "end"]
    row = await contest.contest()
    longer = replace(row.settings, duration_us=row.settings.duration_us + 60 * MINUTE_US)
    await contest.transact(
        lambda tx: lifecycle.update(
            tx, contest.contest_id, longer, version=row.version, slug=row.slug, actor="eva", reason="power cut"
        )
    )
    assert await announcer.run_once() == 1
    assert await announced(contest) == ["start"]
    await store.clock.advance(60 * 60_000)
    assert await announcer.run_once() == 1
    assert await announced(contest) == ["start", "end"]
    assert await ticks(store) == ["contest.ended"] * 2


async def test_triggers_see_neither_drafts_nor_the_past_nor_other_contests(store: StoreHarness) -> None:
    contest = await make_contest(store, settings=icpc_settings(starts_at=NOON_US + MINUTE_US))
    other = await make_contest(store, settings=icpc_settings(starts_at=NOON_US + MINUTE_US))
    await contest.transact(lambda tx: lifecycle.unpublish(tx, contest.contest_id, actor="eva", reason="not yet"))
    await listen_for_events(store, "contest.started", only=contest.contest_id)
    await store.clock.advance(2 * 60_000)
    await listen_for_events(store, "contest.started")
    assert await ContestAnnouncer(store.database).run_once() == 1
    assert (await announced(contest), await announced(other)) == ([], ["start"])
    assert await ticks(store) == []
