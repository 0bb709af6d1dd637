"""Rejudging: looked at first, applied all at once, never over somebody else's change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, add_revision, publish_problem
from tests.support.store_harness import StoreHarness

ROOT = "/api/v1/rejudge-batches"


@pytest.fixture
async def published_problem(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def sqlite_published_problem(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on SQLite."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


async def judged(published_problem: PublishedProblem, client: httpx.AsyncClient, *verdicts: Verdict) -> list[str]:
    """Submissions with these verdicts; their ids."""
    made = [await published_problem.submit(client) for _ in verdicts]
    for item, verdict in zip(made, verdicts, strict=True):
        await published_problem.finish(item["job_id"], verdict, score=float(verdict is Verdict.AC))
    return [item["submission_id"] for item in made]


async def batch_of(judge: httpx.AsyncClient, **fields: Any) -> str:
    body = {"filter": {"problem": "sum"}, "reason": "test 1 was wrong"} | fields
    answer = await judge.post(ROOT, json=body)
    assert answer.status_code == 202, answer.text
    batch_id: str = answer.json()["id"]
    return batch_id


async def rejudged(published_problem: PublishedProblem, batch_id: str, *verdicts: Verdict) -> None:
    """Let the new runs of a batch end, in the order of their submissions."""
    rows = await published_problem.api.store.rows(
        "SELECT job_id FROM rejudge_items WHERE batch_id = :id ORDER BY submission_id", id=batch_id
    )
    for row, verdict in zip(rows, verdicts, strict=True):
        await published_problem.finish(row["job_id"], verdict, score=float(verdict is Verdict.AC), time_ms=99)


async def verdicts_of(published_problem: PublishedProblem, ids: list[str]) -> list[str]:
    rows = await published_problem.api.store.rows("SELECT id, verdict FROM submissions")
    found = {row["id"]: row["verdict"] for row in rows}
    return [found[item] for item in ids]


async def test_nothing_changes_before_a_batch_is_applied_and_then_all_of_it(
    published_problem: PublishedProblem,
) -> None:
    async with published_problem.user_client("admin") as author, published_problem.user_client("judge") as judge:
        ids = await judged(published_problem, author, Verdict.AC, Verdict.WA, Verdict.AC)
        revision_id = await add_revision(published_problem)
        batch_id = await batch_of(judge)
        refused = await judge.post(f"{ROOT}/{batch_id}:apply")
        assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_TRANSITION")
        await rejudged(published_problem, batch_id, Verdict.WA, Verdict.AC, Verdict.AC)
        batch = (await judge.get(f"{ROOT}/{batch_id}")).json()
        assert (batch["state"], batch["total"], batch["ended"]) == ("ready", 3, 3)
        preview = (await judge.get(f"{ROOT}/{batch_id}/preview")).json()
        assert [(item["old_verdict"], item["new_verdict"]) for item in preview["items"]] == [
            ("AC", "WA"),
            ("WA", "AC"),
        ]
        assert {(d["old_verdict"], d["new_verdict"], d["count"]) for d in preview["differences"]} == {
            ("AC", "WA", 1),
            ("WA", "AC", 1),
            ("AC", "AC", 1),
        }
        assert await verdicts_of(published_problem, ids) == ["AC", "WA", "AC"]
        applied = await judge.post(f"{ROOT}/{batch_id}:apply")
        assert applied.status_code == 200, applied.text
        assert (applied.json()["changed"], applied.json()["batch"]["state"]) == (3, "applied")
        assert await verdicts_of(published_problem, ids) == ["WA", "AC", "AC"]
        row = (await author.get(f"/api/v1/submissions/{ids[0]}")).json()
        assert (row["status"], row["time_ms"], row["revision_id"]) == ("wrong_answer", 99, revision_id)
        runs = (await judge.get(f"/api/v1/submissions/{ids[0]}/judge-runs")).json()["items"]
        assert len(runs) == 2, "the old run stays"
        log = await published_problem.api.store.rows(
            "SELECT reason FROM submission_status_log ORDER BY id DESC LIMIT 3"
        )
        assert {item["reason"] for item in log} == {f"rejudge {batch_id}"}
        twice = await judge.post(f"{ROOT}/{batch_id}:apply")
        assert twice.json()["code"] == "INVALID_TRANSITION"
        audit = await published_problem.api.store.rows("SELECT action FROM audit_log ORDER BY id")
        assert [item["action"] for item in audit] == ["create", "apply"]


async def test_results_of_each_run_are_read_by_its_id(published_problem: PublishedProblem) -> None:
    async with (
        published_problem.user_client("admin") as judge,
        published_problem.user_client() as author,
        published_problem.user_client() as other,
    ):
        ids = await judged(published_problem, author, Verdict.AC)
        old = (await author.get(f"/api/v1/submissions/{ids[0]}")).json()["job_id"]
        batch_id = await batch_of(judge)
        runs = (await judge.get(f"/api/v1/submissions/{ids[0]}/judge-runs")).json()["items"]
        (new,) = {run["id"] for run in runs} - {old}
        waiting = (await judge.get(f"/api/v1/judge-runs/{new}/results")).json()
        assert (waiting["status"], waiting["document"]) == ("pending", None)
        await rejudged(published_problem, batch_id, Verdict.WA)
        found = (await judge.get(f"/api/v1/judge-runs/{new}/results")).json()
        assert (found["view"], found["submission_id"], found["attempt_id"]) == ("jury", ids[0], 1)
        assert (found["status"], found["document"]["verdict"]) == ("succeeded", "WA")
        assert (await judge.get(f"/api/v1/judge-runs/{old}/results")).json()["document"]["verdict"] == "AC"
        hidden = await author.get(f"/api/v1/judge-runs/{new}/results")
        assert (hidden.status_code, hidden.json()["code"]) == (404, "JUDGE_RUN_NOT_FOUND"), "it is not applied"
        await judge.post(f"{ROOT}/{batch_id}:apply")
        for job_id, verdict in ((old, "AC"), (new, "WA")):
            seen = (await author.get(f"/api/v1/judge-runs/{job_id}/results")).json()
            assert (seen["view"], seen["document"]["verdict"]) == ("author", verdict)
            assert "the secret answer" not in str(seen)
            assert (await other.get(f"/api/v1/judge-runs/{job_id}/results")).status_code == 404
        assert (await judge.get("/api/v1/judge-runs/none/results")).json()["code"] == "JUDGE_RUN_NOT_FOUND"


@pytest.mark.parametrize(
    ("policy", "result"),
    [
        ("latest", ["WA", "AC", "TLE", "WA"]),
        ("best", ["AC", "AC", "WA", "WA"]),
        ("first_accepted_stays", ["AC", "AC", "TLE", "WA"]),
    ],
)
async def test_policies(published_problem: PublishedProblem, policy: str, result: list[str]) -> None:
    async with published_problem.user_client("admin") as author, published_problem.user_client("judge") as judge:
        ids = await judged(published_problem, author, Verdict.AC, Verdict.WA, Verdict.WA, Verdict.WA)
        batch_id = await batch_of(judge, policy=policy)
        await rejudged(published_problem, batch_id, Verdict.WA, Verdict.AC, Verdict.TLE, Verdict.SE)
        await judge.post(f"{ROOT}/{batch_id}:apply")
        assert await verdicts_of(published_problem, ids) == result, (
            "and a run that failed through our fault changes nothing"
        )


async def test_what_changed_meanwhile_is_not_overwritten(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client("admin") as author, published_problem.user_client("judge") as judge:
        ids = await judged(published_problem, author, Verdict.AC, Verdict.AC)
        first, second = await batch_of(judge, filter={"ids": ids}), await batch_of(judge, filter={"ids": ids[:1]})
        await rejudged(published_problem, first, Verdict.WA, Verdict.WA)
        await rejudged(published_problem, second, Verdict.TLE)
        assert (await judge.post(f"{ROOT}/{second}:apply")).status_code == 200
        late = await judge.post(f"{ROOT}/{first}:apply")
        assert (late.status_code, late.json()["code"]) == (409, "CONFLICT")
        assert await verdicts_of(published_problem, ids) == ["TLE", "AC"], "all or nothing"
        preview = (await judge.get(f"{ROOT}/{first}/preview")).json()["items"]
        assert [item["has_changed"] for item in preview] == [True, False]
        partly = (await judge.post(f"{ROOT}/{first}:apply", json={"skip_changed": True})).json()
        assert (partly["changed"], partly["skipped"]) == (1, 1)
        assert await verdicts_of(published_problem, ids) == ["TLE", "WA"]


async def test_a_change_that_is_being_committed_wins_over_applying(
    postgres_store: StoreHarness, tmp_path: Path
) -> None:
    """Applying waits for the transaction that holds a submission, and then reads its result."""
    async with make_app(postgres_store, tmp_path, OPEN_GATE) as api:
        published_problem = await publish_problem(api)
        async with published_problem.user_client("admin") as author, published_problem.user_client("judge") as judge:
            ids = await judged(published_problem, author, Verdict.AC, Verdict.AC)
            batch_id = await batch_of(judge)
            await rejudged(published_problem, batch_id, Verdict.WA, Verdict.WA)
            connection = await asyncpg.connect(postgres_store.url)
            try:
                async with connection.transaction():
                    await connection.execute(
                        "UPDATE submissions SET verdict = 'TLE', status = 'error', judged_by_job_id = 'hand', "
                        "version = version + 1 WHERE id = $1",
                        ids[0],
                    )
                    applying = asyncio.create_task(judge.post(f"{ROOT}/{batch_id}:apply"))
                    async with asyncio.timeout(120):
                        while not await connection.fetchval(
                            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                        ):
                            await asyncio.sleep(0.01)
            finally:
                await connection.close()
            answer = await applying
            assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
            assert await verdicts_of(published_problem, ids) == ["TLE", "AC"]


async def test_discarded_and_canceled_batches_change_nothing(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client("admin") as author, published_problem.user_client("judge") as judge:
        ids = await judged(published_problem, author, Verdict.AC, Verdict.AC)
        batch_id = await batch_of(judge, filter={"ids": ids[:1]})
        await rejudged(published_problem, batch_id, Verdict.WA)
        assert (await judge.post(f"{ROOT}/{batch_id}:discard")).json()["state"] == "discarded"
        running = await batch_of(judge, revision="pinned")
        canceled = await judge.post(f"{ROOT}/{running}:cancel", json={"reason": "wrong filter"})
        assert canceled.json()["state"] == "canceled"
        open_runs = await published_problem.api.store.rows(
            "SELECT id FROM jobs WHERE finished_at IS NULL AND kind = 'judge'"
        )
        assert open_runs == []
        again = await judge.post(f"{ROOT}/{running}:cancel")
        assert again.json()["code"] == "INVALID_TRANSITION"
        assert await verdicts_of(published_problem, ids) == ["AC", "AC"]
        assert (await judge.get(f"{ROOT}/none")).json()["code"] == "REJUDGE_BATCH_NOT_FOUND"
        assert len((await judge.get(ROOT)).json()["items"]) == 2


async def test_authors_see_no_run_of_a_batch_that_is_not_applied(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        (submission_id,) = await judged(published_problem, author, Verdict.AC)
        batch_id = await batch_of(judge)
        job = await published_problem.api.store.row("SELECT job_id FROM rejudge_items")
        place = f"/api/v1/submissions/{submission_id}/judge-runs"
        assert len((await author.get(place)).json()["items"]) == 1
        assert (await author.get(f"/api/v1/judge-runs/{job['job_id']}")).status_code == 404
        await rejudged(published_problem, batch_id, Verdict.WA)
        await judge.post(f"{ROOT}/{batch_id}:apply")
        assert len((await author.get(place)).json()["items"]) == 2


async def test_a_filter_must_say_something_and_match_something(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        await published_problem.submit(author)
        for wrong in ({}, {"problem": "sum"}, {"ids": ["none"]}):
            answer = await judge.post(ROOT, json={"filter": wrong, "reason": "x"})
            assert (answer.status_code, answer.json()["fields"]["field"]) == (400, "filter")
