"""Concurrent submissions, verdicts and changes of the timeline lose nothing and deadlock never, on PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from adjudge.contests import jury, lifecycle
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.contests.submissions import JuryDecision
from tests.support.contest_fixture import MINUTE_US, BoardReader, ContestFixture, make_contest
from tests.support.lock_order import record_lock_order
from tests.support.store_harness import NOON_US, StoreHarness

MINUTE_MS = 60_000


async def change_duration(fixture: ContestFixture, minutes: int) -> None:
    contest = await fixture.contest()
    settings = replace(contest.settings, duration_us=minutes * MINUTE_US)
    await fixture.transact(
        lambda tx: lifecycle.update(
            tx, contest.id, settings, version=contest.version, slug=contest.slug, actor="ada", reason="extension"
        )
    )


async def test_two_problems_of_one_team_are_judged_at_once(postgres_store: StoreHarness) -> None:
    fixture = await make_contest(postgres_store, problems=4, people=1)
    await postgres_store.clock.advance(MINUTE_MS)
    for verdict in (Verdict.WA, Verdict.AC):
        made = [await fixture.submit(problem=index) for index in range(4)]
        await asyncio.gather(*(fixture.judge(item, verdict) for item in made))
        await fixture.check()
    assert (await fixture.stored(JURY))[fixture.participants[0]][0][0] == 4


async def test_concurrent_submissions_have_distinct_increasing_numbers(postgres_store: StoreHarness) -> None:
    fixture = await make_contest(postgres_store, people=2)
    await postgres_store.clock.advance(MINUTE_MS)
    await asyncio.gather(*(fixture.submit(index % 2, index % 3) for index in range(12)))
    rows = await postgres_store.rows("SELECT number, received_at FROM contest_submissions ORDER BY number")
    assert [row["number"] for row in rows] == list(range(1, 13))
    assert [row["received_at"] for row in rows] == sorted(row["received_at"] for row in rows)
    await fixture.check()


async def test_verdicts_and_changes_of_the_timeline_at_once(postgres_store: StoreHarness) -> None:
    """Readers that follow the log see what is stored, and locks are taken in the documented order."""
    fixture = await make_contest(postgres_store, problems=3, people=4)
    readers = [BoardReader(fixture, view) for view in (JURY, PUBLIC)]
    for reader in readers:
        await reader.follow()
    await postgres_store.clock.advance(239 * MINUTE_MS)
    with record_lock_order() as recorder:
        for round_number in range(4):
            await postgres_store.clock.advance(MINUTE_MS)
            made = [await fixture.submit(person, problem) for person in range(4) for problem in range(3)]
            verdicts = [Verdict.AC, Verdict.WA, Verdict.CE, Verdict.TLE]
            await asyncio.gather(
                *(fixture.judge(item, verdicts[(index + round_number) % 4]) for index, item in enumerate(made)),
                change_duration(fixture, 300 + round_number),
                fixture.transact(
                    lambda tx: jury.set_clocks(
                        tx, fixture.contest_id, [(fixture.participants[0], None, MINUTE_US)], actor="ada", reason=""
                    )
                ),
                fixture.transact(
                    lambda tx, made=made: jury.decide(  # type: ignore[misc]  # a default binds the loop variable
                        tx, made[0], JuryDecision(is_ignored=True), version=1, actor="ada", reason=""
                    )
                ),
                fixture.submit(3, 2),
            )
            from_at = NOON_US + round_number * MINUTE_US
            await fixture.transact(
                lambda tx, from_at=from_at: lifecycle.remove_interval(  # type: ignore[misc]  # as above
                    tx, fixture.contest_id, new_id(), from_at=from_at, to_at=from_at + 1_000_000, actor="ada"
                )
            )
            await fixture.check()
            for reader in readers:
                await reader.follow()
                assert reader.board() == await fixture.stored(reader.view)
    assert recorder.violations == {}
