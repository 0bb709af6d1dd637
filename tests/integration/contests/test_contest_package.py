"""Contest packages: export and import on an empty installation give the same contest and the same scoreboards."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.relay.contest_announcer import ContestAnnouncer
from adjudge.store.contests.scoreboard import JURY, PUBLIC
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import Judgement
from tests.support.held_contests import (
    CONTESTS,
    HeldContest,
    Installation,
    hold_homework,
    hold_icpc,
    hold_ioi,
    installation,
)
from tests.support.store_harness import StoreHarness, fence_of
from tests.support.stored_scoreboards import recomputed_board, stored_board

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite"])
async def both(
    request: pytest.FixtureRequest, sqlite_store: StoreHarness, postgres_store: StoreHarness, tmp_path: Path
) -> AsyncIterator[tuple[Installation, Installation]]:
    """Two installations, on different databases."""
    stores = [sqlite_store, postgres_store]
    if request.param.startswith("postgresql"):
        stores.reverse()
    async with installation(stores[0], tmp_path / "a") as a, installation(stores[1], tmp_path / "b") as b:
        yield a, b


async def follow(target: Installation, source: Installation) -> None:
    """Let both installations have the same time."""
    await target.api.store.clock.advance((source.api.store.clock.now_us - target.api.store.clock.now_us) // 1_000)


async def test_icpc_contest_moves_with_its_scoreboards(both: tuple[Installation, Installation]) -> None:
    source, target = both
    contest = await hold_icpc(source)
    store = target.api.store
    announcer = ContestAnnouncer(store.database)
    for step in ("", ":thaw", ":finalize", ":close-updates"):
        if step:
            await contest.advance(60)
            await contest.call("POST", step)
        await follow(target, source)
        data = await source.export("finals")
        assert data == await source.export("finals")
        slug = f"moved{step.replace(':', '-')}"
        seen = await target.import_contest(data, slug=slug, preview=True)
        assert [item for item in seen["findings"] if item["severity"] == "error"] == []
        await announcer.run_once()
        done = await target.import_contest(data, slug=slug)
        assert await announcer.run_once() == 0, "nobody is notified of the past"
        assert done["items"] == seen["items"]
        before, after = await source.boards("finals"), await target.boards(slug)
        for name, body in before.items():
            assert after[name] == body, (step, name)
        assert (await target.import_contest(data, slug=slug))["is_unchanged"]
    assert await store.rows("SELECT id FROM webhook_deliveries") == []
    unread = await store.rows("SELECT user_id FROM contest_read_marks")
    assert len(unread) == 4 * len(contest.users)


@pytest.mark.parametrize("make", [hold_ioi, hold_homework])
async def test_other_formats_move_with_their_scoreboards(
    both: tuple[Installation, Installation], make: Callable[[Installation], Awaitable[HeldContest]]
) -> None:
    source, target = both
    contest = await make(source)
    await follow(target, source)
    data = await source.export(contest.slug)
    await target.import_contest(data)
    assert await target.boards(contest.slug) == await source.boards(contest.slug)
    assert await target.settings(contest.slug) == await source.settings(contest.slug)
    assert await target.export(contest.slug) == data
    assert (await target.import_contest(data))["is_unchanged"]


async def test_results_are_final_and_only_unjudged_submissions_are_queued(
    both: tuple[Installation, Installation],
) -> None:
    source, target = both
    contest = await hold_homework(source)
    await follow(target, source)
    await target.import_contest(await source.export(contest.slug))
    store = target.api.store
    jobs = await store.rows("SELECT id, status, submission_id FROM jobs ORDER BY id")
    assert [job["status"] for job in jobs] == ["succeeded", "succeeded", "pending"]
    outbox = await store.rows("SELECT job_id FROM outbox")
    assert [row["job_id"] for row in outbox] == [jobs[2]["id"]]
    log = await store.rows(
        "SELECT submission_id, from_status, to_status, version FROM submission_status_log ORDER BY id"
    )
    judged = [(row["from_status"], row["to_status"], row["version"]) for row in log]
    assert judged[:2] == [("pending", "judging", 2), ("judging", "wrong_answer", 3)]
    cases = await store.rows("SELECT job_id, name, verdict FROM case_results ORDER BY job_id")
    assert [row["verdict"] for row in cases] == ["PA", "AC"]
    items = (await target.admin.get(f"{CONTESTS}/{contest.slug}/jury/submissions")).json()["items"]
    assert [item["verdict"] for item in items] == [None, "AC", "PA"]
    source_text = await target.admin.get(f"/api/v1/submissions/{items[1]['submission_id']}/source")
    assert source_text.text == "int main() {} // s1 A\n"
    # A job of the import is judged, and the scoreboard follows.
    (job,) = (await store.claim(jobs[2]["id"])).done
    done = JobResult(fence_of(job), result={"score": 100, "max_score": 100}, typed_result=Judgement(Verdict.AC, 100.0))
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [done]))
    contest_id = (await store.row("SELECT id FROM contests"))["id"]
    for view in (JURY, PUBLIC):
        stored = await store.database.read(lambda tx, view=view: stored_board(tx, contest_id, view))  # type: ignore[misc]  # bound now
        again = await store.database.read(lambda tx, view=view: recomputed_board(tx, contest_id, view))  # type: ignore[misc]  # bound now
        assert stored == again
    # Rejudging an imported submission works like any other.
    body = {"filter": {"contest": contest_id}, "reason": "check"}
    batch = await target.admin.post("/api/v1/rejudge-batches", json=body)
    assert batch.is_success, batch.text


async def test_export_has_no_secrets_and_keeps_what_the_organiser_may_not_read(
    both: tuple[Installation, Installation],
) -> None:
    source, target = both
    contest = await hold_icpc(source)
    await contest.call("PATCH", "", {"registration": "code", "registration_code": "letmein"})
    await source.api.store.write(
        "UPDATE users SET password_hash = 'hash-of-a-password', email = name || '@mail.invalid'"
    )
    organiser_id, token = await source.api.user("contestant", "org")
    await contest.call("POST", "/roles", {"user": organiser_id, "role": "organiser"})
    with zipfile.ZipFile(io.BytesIO(await source.export("finals"))) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
        assert "problems/apples/apples.zip" in archive.namelist()
    for secret in (b"hash-of-a-password", b"letmein", b"mail.invalid", b"_hash"):
        assert secret not in everything
    async with source.api.client(token) as organiser:
        answer = await organiser.get(f"{CONTESTS}/finals/package")
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert not [name for name in archive.namelist() if name.startswith("problems/")]
        assert (await organiser.post(f"{CONTESTS}:import", content=answer.content)).status_code == 403
    seen = await target.import_contest(answer.content, preview=True)
    assert [item["message"] for item in seen["findings"] if item["severity"] == "error"] == [
        "id: there is no problem 'apples'.",
        "id: there is no problem 'bridges'.",
    ]
    _, other = await source.api.user("contestant")
    async with source.api.client(other) as other_user:
        assert (await other_user.get(f"{CONTESTS}/finals/package")).status_code == 403


async def test_setter_imports_a_draft_but_no_results(both: tuple[Installation, Installation]) -> None:
    source, target = both
    await hold_icpc(source)
    await follow(target, source)
    full = await source.export("finals")
    plain = await source.export("finals", submissions=False)
    _, token = await target.api.user("setter")
    async with target.api.client(token) as setter:
        refused = await setter.post(f"{CONTESTS}:import", content=full)
        assert (refused.status_code, refused.json()["code"]) == (400, "PACKAGE_REFUSED")
        assert "only administrators may import submissions" in refused.json()["detail"]
        done = await setter.post(f"{CONTESTS}:import", content=plain, params={"slug": "again"})
        assert done.is_success, done.text
        found = (await setter.get(f"{CONTESTS}/again")).json()
        assert (found["state"], found["roles"], found["title"]) == ("draft", ["organiser"], "The finals")
        board = (await setter.get(f"{CONTESTS}/again/scoreboard", params={"view": "jury"})).json()
        assert {row["solved"] for row in board["rows"]} == {0}
        people = (await setter.get(f"{CONTESTS}/again/participants")).json()["items"]
        assert {item["code"]: item["is_disqualified"] for item in people}["t4"] is False
    assert await target.api.store.rows("SELECT id FROM submissions") == []


async def test_contest_that_differs_is_refused_and_nothing_changes(both: tuple[Installation, Installation]) -> None:
    source, target = both
    contest = await hold_icpc(source)
    await follow(target, source)
    data = await source.export("finals")
    await target.import_contest(data)
    before = await target.export("finals")
    await contest.decide(1, is_ignored=True)
    await contest.call("PATCH", "/participants/t1", {"name": "Renamed"})
    changed = await source.export("finals")
    answer = await target.admin.post(f"{CONTESTS}:import", content=changed)
    assert (answer.status_code, answer.json()["code"]) == (400, "PACKAGE_REFUSED")
    assert "the contest 'finals' exists and differs in: submissions, teams." in answer.json()["detail"]
    assert await target.export("finals") == before
