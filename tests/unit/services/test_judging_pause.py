"""Judging paused for a problem: submissions are accepted, wait, and are judged in their order afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.judging_pauses import JudgingPauses
from adjudge.store.jobs import outbox
from adjudge.store.jobs.models import DispatchedMessage, JobResult
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.store_harness import StoreHarness

PROBLEM = f"{API}/spring/jury/problems/A"


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A running contest, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        await found.advance_hours(1)
        yield found


async def submit(contest: ContestApp, client: httpx.AsyncClient) -> str:
    made = await succeeded(await contest.submit(client))
    return str(made["job_id"])


async def pause(contest: ContestApp) -> None:
    await succeeded(await contest.organiser.post(f"{PROBLEM}:pause-judging", json={"reason": "a test is wrong"}))


async def resume(contest: ContestApp) -> None:
    await succeeded(await contest.organiser.post(f"{PROBLEM}:resume-judging", json={}))


async def dispatched(store: StoreHarness) -> list[str]:
    """What a dispatcher publishes now, marked as delivered."""
    due = await store.transact(lambda tx: outbox.take_due(tx, limit=100))
    sent = [DispatchedMessage(row.job_id, f"0-{index}", row.dispatch_seq) for index, row in enumerate(due)]
    await store.transact(lambda tx: store.jobs.mark_queued(tx, sent, actor="dispatcher"))
    return [row.job_id for row in due]


async def test_submissions_wait_while_judging_is_paused_and_keep_their_order(
    contest: ContestApp, store: StoreHarness
) -> None:
    async with contest.participant() as team:
        before = await submit(contest, team)
        assert await dispatched(store) == [before]
        second = await submit(contest, team)
        await pause(contest)
        third = await submit(contest, team)
        assert await dispatched(store) == []
        claimed = await store.claim(before, second, third)
        assert claimed.done == (), "a message that is on its way starts nothing"
        own = (await succeeded(await team.get("/api/v1/submissions")))["items"]
        assert {item["status"] for item in own} == {"pending"}
        problems = (await succeeded(await team.get(f"{API}/spring/problems")))["items"]
        assert problems[0]["judging_paused"]
        await resume(contest)
        assert await dispatched(store) == [before, second, third]
        await contest.published.finish(before, Verdict.AC)


async def test_run_that_has_begun_is_finished_and_a_failed_attempt_is_held(
    contest: ContestApp, store: StoreHarness
) -> None:
    async with contest.participant() as team:
        fails = await submit(contest, team)
        lost = await submit(contest, team)
    started = await contest.published.claim(fails)
    await store.claim(lost)
    await pause(contest)
    retry = JobResult(started.fence, status=JobStatus.PENDING, reason="crashed")
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [retry]))
    await store.clock.advance(60_000)
    await store.transact(lambda tx: store.jobs.release_expired(tx, actor="watchdog"))
    await contest.advance_hours(1)
    assert await dispatched(store) == []
    await resume(contest)
    assert await dispatched(store) == [fails, lost]


async def test_lost_message_does_not_end_the_hold(contest: ContestApp, store: StoreHarness) -> None:
    async with contest.participant() as team:
        job_id = await submit(contest, team)
        await dispatched(store)
        await pause(contest)
        await store.transact(lambda tx: store.jobs.requeue(tx, [job_id], actor="reconciler"))
        assert await dispatched(store) == []


async def test_scheduler_completes_what_settings_or_a_crash_left(contest: ContestApp, store: StoreHarness) -> None:
    pauses = JudgingPauses(store.database, store.jobs, name="scheduler")
    async with contest.participant() as team:
        job_id = await submit(contest, team)
    await contest.set_problem(judging_paused=True)
    assert await pauses.run_once() == 1
    assert await pauses.run_once() == 0
    assert await dispatched(store) == []
    await contest.set_problem(judging_paused=False)
    assert await pauses.run_once() == 1
    assert await dispatched(store) == [job_id]


async def test_canceled_submission_of_a_paused_problem_is_not_released(
    contest: ContestApp, store: StoreHarness
) -> None:
    await pause(contest)
    async with contest.participant() as team:
        made = await succeeded(await contest.submit(team))
    await succeeded(await contest.organiser.post(f"/api/v1/submissions/{made['submission_id']}:cancel", json={}))
    await resume(contest)
    assert await dispatched(store) == []


async def test_rejudge_is_not_held(contest: ContestApp, store: StoreHarness) -> None:
    async with contest.participant() as team:
        job_id = await submit(contest, team)
    await contest.published.finish(job_id, Verdict.WA)
    await dispatched(store)
    await pause(contest)
    await succeeded(
        await contest.organiser.post(f"{API}/spring/jury/submissions/1:rejudge", json={"reason": "new tests"})
    )
    assert len(await dispatched(store)) == 1


async def test_pausing_is_for_the_jury(contest: ContestApp) -> None:
    async with contest.participant() as team:
        assert (await team.post(f"{PROBLEM}:pause-judging", json={})).status_code == 403
    missing = await contest.organiser.post(f"{API}/spring/jury/problems/Z:pause-judging", json={})
    assert missing.status_code == 404
