"""The event feed of a contest: clients that read nothing else know the scoreboard, in every phase, view and version."""

from __future__ import annotations

from adjudge.contests import jury, lifecycle
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging.models import NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from tests.support.contest_fixture import MINUTE_US, ContestFixture, icpc_settings, make_contest
from tests.support.event_feeds import FeedFixture
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
