"""Submitting in a contest: who may, when, to which problem, how often, and what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adjudge.domain.contest import ParticipantKind
from adjudge.domain.ip_addresses import is_in_networks
from adjudge.store.problems import commands as problem_commands
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, SOURCE, add_revision, publish_problem
from tests.support.store_harness import StoreHarness


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        yield found


async def refused(answer: httpx.Response, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"], answer.text


async def test_participant_submits_by_label_or_slug_from_start_to_end(contest: ContestApp, store: StoreHarness) -> None:
    async with contest.participant() as client:
        await refused(await contest.submit(client), 409, "has not started")
        await contest.advance_hours(1)
        first = await succeeded(await contest.submit(client))
        await succeeded(await contest.submit(client, problem="sum"))
        rows = await store.rows(
            "SELECT contest_submissions.number AS number, submissions.contest_id AS contest_id, submissions.revision_id"
            " FROM contest_submissions JOIN submissions ON submissions.id = submission_id ORDER BY number"
        )
        assert [row["number"] for row in rows] == [1, 2]
        assert {row["revision_id"] for row in rows} == {contest.published.revision_id}
        assert (await succeeded(await client.get(f"/api/v1/submissions/{first['submission_id']}")))["contest_id"]
        await refused(await contest.submit(client, problem="Z"), 404, "'Z'")
        await contest.advance_hours(5)
        await refused(await contest.submit(client), 409, "has ended")


async def test_others_cannot_submit(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.published.user_client() as other:
        await refused(await contest.submit(other), 403, "do not take part")
        missing = await contest.submit(other, contest="absent")
        await refused(missing, 404, "contest 'absent'")
    await refused(await contest.submit(contest.organiser), 403, "do not take part")


async def test_submission_without_contest_does_not_count_in_one(contest: ContestApp, store: StoreHarness) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as client:
        await contest.published.submit(client)
        assert await store.rows("SELECT 1 FROM contest_submissions") == []


async def test_pinned_revision_is_judged_also_if_the_problem_is_not_published(
    contest: ContestApp, store: StoreHarness
) -> None:
    published = contest.published
    await add_revision(published)
    await store.transact(lambda tx: problem_commands.withdraw(tx, problem_id=published.problem_id, version=3))
    await contest.advance_hours(1)
    async with contest.participant() as client:
        assert (await client.get("/api/v1/problems/sum")).status_code == 404
        await succeeded(await contest.submit(client))
        (row,) = await store.rows("SELECT revision_id FROM submissions")
        assert row["revision_id"] == published.revision_id
        shown = await succeeded(await client.get(f"{API}/spring/problems/A"))
        assert (shown["label"], shown["problem"]["revision_id"]) == ("A", published.revision_id)


async def test_tester_submits_before_the_start(contest: ContestApp) -> None:
    async with contest.participant(ParticipantKind.TEST) as tester:
        await succeeded(await contest.submit(tester))
        await contest.advance_hours(6)
        await refused(await contest.submit(tester), 409, "has ended")


async def test_practice_is_open_after_the_contest_only(contest: ContestApp) -> None:
    async with contest.participant(ParticipantKind.PRACTICE) as client:
        await contest.advance_hours(2)
        assert (await contest.submit(client)).status_code == 409
        await contest.advance_hours(4)
        await succeeded(await contest.submit(client))


async def test_extra_time_and_delay_move_the_own_end(contest: ContestApp) -> None:
    hour_us = 3_600_000_000
    async with contest.participant(extra_us=hour_us) as longer, contest.participant(delay_us=hour_us) as later:
        await contest.advance_hours(1.5)
        await succeeded(await contest.submit(longer))
        await refused(await contest.submit(later), 409, "has not started")
        await contest.advance_hours(5)
        await succeeded(await contest.submit(longer))
        await succeeded(await contest.submit(later))
        await contest.advance_hours(1)
        await refused(await contest.submit(longer), 409, "has ended")


async def test_late_submission_is_refused_or_unofficial(contest: ContestApp, store: StoreHarness) -> None:
    async with contest.participant() as client:
        await contest.advance_hours(7)
        await refused(await contest.submit(client), 409, "has ended")
        await contest.change(late_policy="unofficial")
        await succeeded(await contest.submit(client))
        (row,) = await store.rows("SELECT official FROM contest_submissions")
        assert not row["official"]
        assert await store.rows("SELECT jury FROM scoreboard_cells WHERE jury <> '{}'") == []


async def test_problem_opens_closes_and_stops_accepting(contest: ContestApp) -> None:
    await contest.set_problem(opens_after_sec=3_600, closes_after_sec=7_200)
    async with contest.participant() as client:
        await contest.advance_hours(1.5)
        await refused(await contest.submit(client), 404, "contest problem 'A'")
        assert (await succeeded(await client.get(f"{API}/spring/problems")))["items"] == []
        assert (await client.get(f"{API}/spring/problems/A")).status_code == 404
        await contest.advance_hours(1)
        await succeeded(await contest.submit(client))
        await contest.set_problem(opens_after_sec=3_600, closes_after_sec=7_200, accepts=False)
        await refused(await contest.submit(client), 409, "does not accept")
        await contest.set_problem(opens_after_sec=3_600, closes_after_sec=7_200)
        await contest.advance_hours(1)
        await refused(await contest.submit(client), 409, "is closed")
        assert (await client.get(f"{API}/spring/problems/A")).status_code == 200


async def test_language_must_be_allowed_by_the_contest(contest: ContestApp) -> None:
    await contest.change(allowed_languages=["python"])
    async with contest.participant() as client:
        await contest.advance_hours(1)
        await refused(await contest.submit(client), 400, "language: C++")
        await succeeded(await contest.submit(client, language="python", source="print(1)"))
        await contest.set_problem(allowed_languages=["cpp"])
        await succeeded(await contest.submit(client))


async def test_limit_per_minute_counts_all_problems_of_the_last_minute(
    contest: ContestApp, store: StoreHarness
) -> None:
    await contest.change(submissions_per_minute=2)
    await contest.advance_hours(1)
    async with contest.participant() as client, contest.participant() as other:
        for _ in range(2):
            await succeeded(await contest.submit(client))
        await refused(await contest.submit(client), 429, "At most 2 submissions per minute")
        await succeeded(await contest.submit(other))
        await store.clock.advance(61_000)
        await succeeded(await contest.submit(client))
        assert len(await store.rows("SELECT 1 FROM submissions")) == 4


async def test_requests_at_the_same_time_do_not_exceed_the_limit_per_problem(
    contest: ContestApp, store: StoreHarness
) -> None:
    await contest.change(submissions_per_problem=3)
    await contest.advance_hours(1)
    async with contest.participant() as client, contest.participant() as other:
        both = [contest.submit(client) for _ in range(6)] + [contest.submit(other)]
        answers = await asyncio.gather(*both)
        assert sorted(answer.status_code for answer in answers) == [202] * 4 + [409] * 3
        assert answers[-1].status_code == 202, "the request of another participant in the same batch is stored"
        assert len(await store.rows("SELECT 1 FROM contest_submissions")) == 4


async def test_batch_is_refused_as_a_whole(contest: ContestApp, store: StoreHarness) -> None:
    await contest.change(submissions_per_problem=1)
    await contest.advance_hours(1)
    item = {"problem": "A", "contest": "spring", "language": "cpp", "source": SOURCE}
    async with contest.participant() as client:
        answer = await client.post("/api/v1/submissions:batch", json={"items": [item, item]})
        await refused(answer, 409, "Problem A: at most 1")
        assert await store.rows("SELECT 1 FROM submissions") == []
        await succeeded(await client.post("/api/v1/submissions:batch", json={"items": [item]}))


async def test_form_names_the_contest(contest: ContestApp, store: StoreHarness) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as client:
        form = {"problem": "A", "contest": "spring", "language": "cpp"}
        await succeeded(await client.post("/api/v1/submissions", data=form, files={"source": ("a.cpp", SOURCE)}))
        assert len(await store.rows("SELECT 1 FROM contest_submissions")) == 1


async def test_address_must_be_in_the_ranges(contest: ContestApp) -> None:
    await contest.change(address_ranges=["10.1.0.0/16"])
    await contest.advance_hours(1)
    async with contest.participant() as client:
        await refused(await contest.submit(client), 403, "address is not allowed")
        await contest.change(address_ranges=["127.0.0.0/8"])
        await succeeded(await contest.submit(client))


@pytest.mark.parametrize(
    ("address", "is_in"),
    [("10.0.0.7", True), ("10.0.1.7", False), ("::ffff:10.0.0.7", True), ("fd00::1", True), ("", False)],
)
def test_address_is_compared_with_networks(address: str, is_in: bool) -> None:
    assert is_in_networks(address, ["10.0.0.0/24", "fd00::/8"]) is is_in


async def test_canceled_contest_and_disqualified_participant_are_refused(
    contest: ContestApp, store: StoreHarness
) -> None:
    await contest.advance_hours(1)
    async with contest.participant() as client:
        await store.write("UPDATE participants SET disqualified_at = 1")
        await refused(await contest.submit(client), 403, "disqualified")
        await succeeded(await contest.organiser.post(f"{API}/spring:cancel", json={}))
        await refused(await contest.submit(client), 409, "was canceled")
