"""The event feed of a contest: clients that read nothing else know the scoreboard, in every phase, view and version."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from adjudge.contests import jury, lifecycle
from adjudge.contests.ccs.feed import FeedView
from adjudge.contests.ccs.version import CcsVersion
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.contest import ContestVisibility
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.relay import feed_update
from adjudge.store.contests import feed as feeds
from adjudge.store.contests import participants
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging.models import NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from tests.support.contest_fixture import MINUTE_US, ContestFixture, icpc_settings, make_contest
from tests.support.event_feeds import FeedFixture, sequence_of
from tests.support.store_harness import NOON_US, StoreHarness, fence_of

MINUTE_MS = 60_000
OPEN = icpc_settings(problems_public=True)
"""Visitors see the problems, so that every view has everything that the scoreboard needs."""


async def rejudge(fixture: ContestFixture, submission: str, verdict: Verdict) -> None:
    """Rejudge a submission and apply the result."""
    store = fixture.store
    rejudging, batch_id = RejudgeCommands(store.jobs, listener=CONTEST_LISTENER), new_id()
    batch = NewRejudgeBatch(
        batch_id,
        fixture.users[fixture.participants[0]],
        RejudgeSelection(ids=(submission,)),
        VerdictPolicy.LATEST,
        RevisionChoice.PINNED,
        "wrong data",
    )
    await fixture.transact(lambda tx: rejudging.create(tx, batch))
    (job,) = await store.rows("SELECT id FROM jobs WHERE rejudge_batch_id = :id", id=batch_id)
    claimed = await store.claim(job["id"])
    await fixture.finish(fence_of(claimed.done[0]), verdict)
    await fixture.transact(lambda tx: rejudging.apply(tx, batch_id, actor="ada"))


async def decide(fixture: ContestFixture, submission: str, **decision: object) -> None:
    """Let the jury decide about a submission."""
    row = await fixture.store.database.read(lambda tx: contest_submissions.find(tx, submission))
    given = JuryDecision(**decision)  # type: ignore[arg-type]
    await fixture.transact(
        lambda tx: jury.decide(tx, submission, given, version=row.version, actor="ada", reason="because")
    )


@pytest.mark.slow
async def test_clients_of_the_feed_alone_know_the_scoreboard_in_every_phase(store: StoreHarness) -> None:
    fixture = await make_contest(store, problems=2, people=3, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(-5 * MINUTE_MS)
    await feed.check()  # before the start
    await store.clock.advance(15 * MINUTE_MS)
    first = await fixture.submit(0, 0)
    second = await fixture.submit(1, 0)
    await feed.check()
    await fixture.judge(first, Verdict.WA)
    await feed.check()
    await fixture.judge(second, Verdict.AC)
    await store.clock.advance(10 * MINUTE_MS)
    third = await fixture.submit(0, 0)
    await fixture.judge(third, Verdict.AC)
    compile_error = await fixture.submit(2, 1)
    await fixture.judge(compile_error, Verdict.CE)
    await feed.check()

    await rejudge(fixture, second, Verdict.WA)
    await feed.check()
    await decide(fixture, second, override_verdict=Verdict.AC, overridden_by=fixture.users[fixture.participants[0]])
    await feed.check()
    await decide(fixture, first, is_ignored=True)
    await feed.check()
    await fixture.transact(
        lambda tx: lifecycle.remove_interval(
            tx,
            fixture.contest_id,
            new_id(),
            from_at=NOON_US + 12 * MINUTE_US,
            to_at=NOON_US + 17 * MINUTE_US,
            actor="ada",
        )
    )
    await feed.check()

    await store.clock.advance(230 * MINUTE_MS)  # 255 minutes, 250 of them count: frozen
    await feed.check()
    frozen = await fixture.submit(2, 0)
    await feed.check()
    await fixture.judge(frozen, Verdict.AC)
    await feed.check()
    await rejudge(fixture, frozen, Verdict.WA)
    await feed.check()
    await store.clock.advance(60 * MINUTE_MS)
    await feed.check()  # ended
    await fixture.transact(lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor="ada", reason=""))
    await feed.check()
    await decide(fixture, first, is_ignored=False)
    await feed.check()
    await fixture.transact(lambda tx: lifecycle.finalize(tx, fixture.contest_id, actor="ada", reason=""))
    await feed.check()
    await fixture.transact(lambda tx: lifecycle.close_updates(tx, fixture.contest_id, actor="ada", reason=""))
    await feed.check()
    for consumer in feed.consumers.values():
        assert consumer.state["end_of_updates"] is not None
        assert consumer.types[-1] == "state"
    assert await feed.writer.run_once() == 0


async def test_scoreboards_that_are_compared_have_rows(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(MINUTE_MS)
    await fixture.judge(await fixture.submit(), Verdict.AC)
    await feed.check()
    for view, version in feed.consumers:
        rows = (await feed.scoreboard(view, version))["rows"]
        assert len(rows) == 3
        assert rows[0]["score"]["num_solved"] == 1


async def test_a_verdict_since_the_freeze_is_no_event_outside_of_the_jury(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(250 * MINUTE_MS)
    before = await fixture.submit(0, 0)  # its verdict is hidden as well: it was received since the freeze
    await feed.update()
    ends = {key: len(set(consumer.tokens)) for key, consumer in feed.consumers.items()}
    await fixture.judge(before, Verdict.AC)
    await decide(fixture, before, verified_by=fixture.users[fixture.participants[0]])
    await rejudge(fixture, before, Verdict.WA)
    await feed.update()
    for (view, version), consumer in feed.consumers.items():
        has_new = len(set(consumer.tokens)) > ends[view, version]
        assert has_new == (view is FeedView.JURY)
        assert bool(consumer.objects["judgements"]) == (view is FeedView.JURY)
        assert list(consumer.objects["submissions"]) == ["1"]


async def test_rejudged_judgements_are_deleted_or_no_longer_current(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.AC, {"verdict": "AC", "score": 1.0})
    await feed.check()
    await rejudge(fixture, submission, Verdict.WA)
    await feed.check()
    old = feed.consumers[FeedView.JURY, CcsVersion.V2023_06].objects["judgements"]
    assert [item["judgement_type_id"] for item in old.values()] == ["WA"]
    new = feed.consumers[FeedView.JURY, CcsVersion.V2026_01].objects["judgements"]
    found = [(item["judgement_type_id"], item["current"]) for item in new.values()]
    assert sorted(found) == [("AC", False), ("WA", True)]


async def test_a_decision_without_effect_on_the_scoreboard_is_an_event(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture, (FeedView.JURY,))
    await store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.WA)
    await feed.check()
    await decide(fixture, submission, override_verdict=Verdict.RE, overridden_by=fixture.users[fixture.participants[0]])
    await feed.check()
    for consumer in feed.consumers.values():
        assert [item["judgement_type_id"] for item in consumer.objects["judgements"].values()] == ["RTE"]


async def test_a_hidden_team_is_deleted_and_cannot_be_read_from_the_beginning(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(MINUTE_MS)
    await fixture.judge(await fixture.submit(1, 0), Verdict.AC)
    await feed.check()
    (row,) = await store.database.read(lambda tx: participants.find_many(tx, [fixture.participants[1]]))
    hidden = replace(row, hidden=True)
    await fixture.transact(lambda tx: jury.update_participant(tx, hidden, actor="ada", reason="a guest"))
    await feed.check()
    for (view, version), consumer in feed.consumers.items():
        assert ("p1" in consumer.objects["teams"]) == (view is FeedView.JURY)
        text = await feed.lines(view, version)
        assert ("Participant 1" in text) == (view is FeedView.JURY)
        assert bool(consumer.objects["submissions"]) == (view is FeedView.JURY)


async def test_nothing_is_repeated_without_a_change(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(MINUTE_MS)
    await fixture.judge(await fixture.submit(), Verdict.AC)
    await feed.check()
    for minutes in (1, 2, 20):  # the data is read again, then the logs are too old, and everything is compared
        await store.clock.advance(minutes * MINUTE_MS)
        for view in FeedView:
            await feed.open(view)
        assert await feed.writer.run_once() == 0


async def test_a_feed_that_nobody_reads_is_resumed_by_the_next_request(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(MINUTE_MS)
    await feed.check()
    await store.clock.advance(90 * MINUTE_MS)
    submission = await fixture.submit()
    await fixture.judge(submission, Verdict.AC)
    await store.write("DELETE FROM scoreboard_log")
    assert await feed.writer.run_once() == 0
    await feed.check()


async def test_a_writer_that_dies_between_reading_and_writing_loses_nothing(
    store: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.relay.feed_update._BATCH", 2)
    monkeypatch.setattr("adjudge.relay.feed_update._LOG_LIMIT", 3)
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(MINUTE_MS)
    made = await fixture.submit_many([(fixture.participants[index % 3], fixture.problems[0]) for index in range(7)])

    async def die_at(step: int, feed_id: str) -> None:
        steps = iter(range(100))

        def on_step() -> None:
            if next(steps) == step:
                raise ConnectionError("killed")

        with pytest.raises(ConnectionError):
            await feed.new_writer().fill(feed_id, on_step=on_step)

    for step in range(3):
        for view in FeedView:
            await die_at(step, (await feed.open(view)).id)
    await feed.check()
    for submission in made:
        await fixture.judge(submission, Verdict.WA)
    for view in FeedView:
        await die_at(1, (await feed.open(view)).id)
    await feed.check()
    for consumer in feed.consumers.values():
        assert list(consumer.objects["submissions"]) == [str(number) for number in range(1, 8)]  # in number order


async def test_several_writers_at_once_write_every_event_once_in_order(
    store: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.relay.feed_update._BATCH", 3)
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture, (FeedView.VISITOR, FeedView.JURY))
    await store.clock.advance(MINUTE_MS)
    opened = [await feed.open(view) for view in feed.views]
    writers = [feed.new_writer() for _ in range(3)]
    is_done = asyncio.Event()

    async def write(index: int) -> None:
        while not is_done.is_set():
            await writers[index].run_once()
            await asyncio.sleep(0)

    async def contest() -> None:
        for round_number in range(6):
            pairs = [(item, fixture.problems[round_number % 3]) for item in fixture.participants]
            made = await fixture.submit_many(pairs)
            await asyncio.gather(*(fixture.judge(item, Verdict.WA) for item in made))
        is_done.set()

    await asyncio.gather(contest(), *map(write, range(3)))
    await feed.check()
    for row in opened:
        events = await store.database.read(partial(feeds.after, feed_id=row.id, sequence=0, limit=10_000))
        assert [item.sequence for item in events] == list(range(1, len(events) + 1))
        texts = [(item.collection, item.object_id, item.data) for item in events]
        assert len(texts) == len(set(texts))


async def test_views_have_their_own_tokens_and_numbers(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=OPEN)
    feed = FeedFixture(fixture)
    await store.clock.advance(250 * MINUTE_MS)
    await fixture.judge(await fixture.submit(), Verdict.AC)
    await feed.check()
    by_view = {view: feed.consumers[view, CcsVersion.V2026_01] for view in FeedView}
    numbers = {view: [sequence_of(token) for token in consumer.tokens] for view, consumer in by_view.items()}
    assert {max(found) == len(set(found)) for found in numbers.values()} == {True}  # without gaps
    assert max(numbers[FeedView.VISITOR]) < max(numbers[FeedView.JURY])
    with pytest.raises(InvalidInput, match="another contest or to another role"):
        await feed.lines(FeedView.VISITOR, CcsVersion.V2023_06, by_view[FeedView.JURY].token)
    last = by_view[FeedView.JURY].token or ""
    with pytest.raises(InvalidInput, match="no event"):
        await feed.lines(FeedView.JURY, CcsVersion.V2023_06, last + "0")
    with pytest.raises(InvalidInput, match="is not a token"):
        await feed.lines(FeedView.JURY, CcsVersion.V2023_06, "33874")


async def test_problems_come_with_the_start_and_only_to_those_who_may_see_them(store: StoreHarness) -> None:
    fixture = await make_contest(store)  # visitors do not see the problems
    feed = FeedFixture(fixture)
    await store.clock.advance(-MINUTE_MS)
    await feed.update()

    def problems(view: FeedView) -> int:
        (count,) = {len(feed.consumers[view, version].objects["problems"]) for version in CcsVersion}
        return count

    assert [problems(view) for view in FeedView] == [0, 0, 3]
    await store.clock.advance(2 * MINUTE_MS)
    await feed.update()
    names = {
        view: {item.get("name") for item in feed.consumers[view, CcsVersion.V2026_01].objects["problems"].values()}
        for view in FeedView
    }
    assert names[FeedView.JURY] == names[FeedView.PARTICIPANT] == {"A problem"}
    assert "A problem" not in names[FeedView.VISITOR]


async def test_a_transaction_that_stays_open_delays_no_verdict(postgres_store: StoreHarness) -> None:
    fixture = await make_contest(postgres_store, settings=OPEN)
    feed = FeedFixture(fixture)
    await postgres_store.clock.advance(MINUTE_MS)
    submission = await fixture.submit()
    await feed.check()
    connection = await asyncpg.connect(postgres_store.url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_current_xact_id()")
            await fixture.judge(submission, Verdict.AC)
            await feed.check()
    finally:
        await connection.close()
    await feed.check()


@pytest.mark.parametrize("limits", [{"_LOG_LIMIT": 3}, {"_BATCH": 2, "_MOST_PARTICIPANTS": 0}])
async def test_changes_above_the_safe_offset_do_not_repeat_a_pass_forever(
    postgres_store: StoreHarness, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(feed_update, name, value)
    fixture = await make_contest(postgres_store, settings=OPEN)
    feed = FeedFixture(fixture)
    await postgres_store.clock.advance(MINUTE_MS)
    submissions = [await fixture.submit() for _ in range(6)]
    await feed.check()
    row, steps = await feed.open(FeedView.JURY), 0

    def count() -> None:
        nonlocal steps
        steps += 1
        assert steps < 10, "the pass is repeated without progress"

    connection = await asyncpg.connect(postgres_store.url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_current_xact_id()")
            for submission in submissions:
                await fixture.judge(submission, Verdict.AC)
            (team,) = await postgres_store.database.read(
                lambda tx: participants.find_many(tx, fixture.participants[1:2])
            )
            hidden = replace(team, hidden=True)
            await fixture.transact(lambda tx: jury.update_participant(tx, hidden, actor="ada", reason="a guest"))
            await feed.writer.fill(row.id, on_step=count)
            assert steps > 0
            (head,) = await postgres_store.database.read(lambda tx: feeds.heads(tx, [row.id]))
            assert head.served < row.requests, "entries are missing, so a client that waits for the present goes on"
    finally:
        await connection.close()
    await feed.check()


async def test_feeds_are_deleted_with_their_contest(store: StoreHarness) -> None:
    fixture = await make_contest(store)
    feed = FeedFixture(fixture)
    await feed.update()
    assert await store.rows("SELECT sequence FROM contest_feed_events LIMIT 1")
    await store.write("DELETE FROM participants")
    await store.write("DELETE FROM contests")
    assert await store.rows("SELECT sequence FROM contest_feed_events") == []
    assert await feed.writer.run_once() == 0


async def test_what_happens_while_a_contest_is_hidden_is_not_read_later(store: StoreHarness) -> None:
    fixture = await make_contest(store, settings=replace(OPEN, starts_at=NOON_US + 60 * MINUTE_US))
    feed = FeedFixture(fixture)
    await feed.update()

    async def rename(title: str, **changes: object) -> None:
        contest = await fixture.contest()
        settings = replace(contest.settings, title=title, **changes)  # type: ignore[arg-type]
        await fixture.transact(
            lambda tx: lifecycle.update(
                tx, contest.id, settings, version=contest.version, slug=contest.slug, actor="ada", reason=""
            )
        )

    await fixture.transact(lambda tx: lifecycle.unpublish(tx, fixture.contest_id, actor="ada", reason=""))
    await rename("Secret plan")
    await feed.update()
    await rename("Finals again", visibility=ContestVisibility.PRIVATE)
    await fixture.transact(lambda tx: lifecycle.publish(tx, fixture.contest_id, actor="ada", reason=""))
    await feed.update()
    await rename("Public finals", visibility=ContestVisibility.PUBLIC)
    await feed.check()
    known = {view: await feed.lines(view, CcsVersion.V2026_01) for view in FeedView}
    assert [view for view, text in known.items() if "Secret plan" in text] == [FeedView.JURY]
    assert [view for view, text in known.items() if "Finals again" in text] == [FeedView.PARTICIPANT, FeedView.JURY]
    assert [view for view, text in known.items() if "Public finals" in text] == list(FeedView)
