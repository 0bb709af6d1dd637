"""Operators pause and resume judging of everything, a language or a problem, and give orders to workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adjudge.registry import ProcessHealth, ProcessInfo, ProcessRole
from adjudge.relay.judging_pauses import JudgingPauses
from adjudge.services.admission import is_judging_paused
from adjudge.store.jobs import outbox
from adjudge.store.ops import worker_controls
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness

OPS = "/api/v1/ops"
REASON = {"reason": "the compiler is replaced"}


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


async def due(store: StoreHarness) -> list[str]:
    """The jobs that a dispatcher would publish now; they stay pending."""
    found = await store.transact(lambda tx: outbox.take_due(tx, limit=100))
    await store.transact(lambda tx: outbox.postpone(tx, [(row.job_id, "", row.dispatch_seq, 0) for row in found]))
    return [row.job_id for row in found]


async def post(client: httpx.AsyncClient, path: str, **body: str) -> None:
    answer = await client.post(f"{OPS}/{path}", json={**REASON, **body})
    assert answer.status_code == 204, answer.text


@pytest.mark.parametrize(("scope", "subject"), [("all", ""), ("language", "cpp"), ("problem", "sum")])
async def test_judge_runs_wait_during_a_pause_and_are_released_in_order(
    published: PublishedProblem, store: StoreHarness, scope: str, subject: str
) -> None:
    scheduler = JudgingPauses(store.database, store.jobs, name="scheduler")
    async with published.user_client() as user, published.user_client("admin") as admin:
        before = (await published.submit(user))["job_id"]
        await post(admin, "judging-pauses", scope=scope, subject=subject)
        during = (await published.submit(user))["job_id"]
        await scheduler.run_once()
        assert await due(store) == []
        assert (await store.claim(before, during)).done == ()
        (listed,) = (await admin.get(f"{OPS}/judging-pauses")).json()["items"]
        expected = {"language": "cpp20", "problem": "sum"}.get(scope, "")
        assert (listed["scope"], listed["subject"], listed["reason"]) == (scope, expected, REASON["reason"])
        await post(admin, "judging-pauses:resume", scope=scope, subject=subject)
        assert await due(store) == [before, during]
        assert (await admin.get(f"{OPS}/judging-pauses")).json()["items"] == []


async def test_other_languages_and_problems_are_judged(published: PublishedProblem, store: StoreHarness) -> None:
    async with published.user_client() as user, published.user_client("admin") as admin:
        await post(admin, "judging-pauses", scope="language", subject="java")
        job_id = (await published.submit(user))["job_id"]
        assert await JudgingPauses(store.database, store.jobs, name="scheduler").run_once() == 0
        assert await due(store) == [job_id]


async def test_job_stays_held_until_every_pause_that_concerns_it_ends(
    published: PublishedProblem, store: StoreHarness
) -> None:
    async with published.user_client() as user, published.user_client("admin") as admin:
        job_id = (await published.submit(user))["job_id"]
        await post(admin, "judging-pauses", scope="all")
        await post(admin, "judging-pauses", scope="problem", subject="sum")
        await post(admin, "judging-pauses:resume", scope="all")
        assert await due(store) == []
        await post(admin, "judging-pauses:resume", scope="problem", subject="sum")
        assert await due(store) == [job_id]


async def test_rejudge_runs_are_held_too(published: PublishedProblem, store: StoreHarness) -> None:
    async with published.user_client() as user, published.user_client("admin") as admin:
        accepted = await published.submit(user)
        await published.finish(accepted["job_id"])
        await post(admin, "judging-pauses", scope="all")
        body = {"filter": {"problem": "sum"}, "reason": "new tests"}
        created = await admin.post("/api/v1/rejudge-batches", json=body)
        assert created.status_code in {201, 202}, created.text
        await JudgingPauses(store.database, store.jobs, name="scheduler").run_once()
        assert await due(store) == []
        await post(admin, "judging-pauses:resume", scope="all")
        assert len(await due(store)) == 1


async def test_executions_are_refused_while_their_language_is_paused(published: PublishedProblem) -> None:
    async with published.user_client("admin") as admin:
        await post(admin, "judging-pauses", scope="language", subject="python3")
        refused = await admin.post("/api/v1/executions", json={"language": "python3", "source": "print(1)\n"})
        assert (refused.status_code, refused.json()["code"]) == (503, "JUDGING_PAUSED")
        other = await admin.post("/api/v1/executions", json={"language": "cpp", "source": "int main() {}\n"})
        assert other.status_code == 202


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"scope": "language"}, "INVALID_INPUT"),
        ({"scope": "language", "subject": "cobol-66"}, "INVALID_INPUT"),
        ({"scope": "problem", "subject": "missing"}, "PROBLEM_NOT_FOUND"),
        ({"scope": "all", "subject": "sum"}, "INVALID_INPUT"),
        ({"scope": "all", "reason": " "}, "INVALID_INPUT"),
    ],
)
async def test_pause_of_an_unknown_subject_is_refused(
    published: PublishedProblem, body: dict[str, str], code: str
) -> None:
    async with published.user_client("admin") as admin:
        answer = await admin.post(f"{OPS}/judging-pauses", json={**REASON, **body})
        assert answer.json()["code"] == code
        assert (await admin.get(f"{OPS}/judging-pauses")).json()["items"] == []


async def test_second_pause_and_second_resume_are_conflicts(published: PublishedProblem, store: StoreHarness) -> None:
    async with published.user_client("admin") as admin:
        await post(admin, "judging-pauses", scope="all")
        again = await admin.post(f"{OPS}/judging-pauses", json={"scope": "all", **REASON})
        assert again.json()["code"] == "CONFLICT"
        await post(admin, "judging-pauses:resume", scope="all")
        again = await admin.post(f"{OPS}/judging-pauses:resume", json={"scope": "all", **REASON})
        assert again.json()["code"] == "CONFLICT"
    logged = await store.rows("SELECT action FROM audit_log WHERE object_kind = 'judging' ORDER BY id")
    assert [row["action"] for row in logged] == ["judging.pause", "judging.resume"]


async def test_worker_gets_orders_to_pause_resume_and_drain(published: PublishedProblem, store: StoreHarness) -> None:
    registry = published.api.services.ops.registry
    await registry.register(ProcessInfo("w1", "host", 7, "1", 2, health=ProcessHealth.READY))
    async with published.user_client("admin") as admin:
        await post(admin, "workers/w1/control", action="pause")
        order = await store.database.read(lambda tx: worker_controls.find(tx, "w1"))
        assert order is not None
        assert (order.mode, order.reason) == ("pause", REASON["reason"])
        await post(admin, "workers/w1/control", action="resume")
        assert await store.database.read(worker_controls.list_all) == []
        again = await admin.post(f"{OPS}/workers/w1/control", json={"action": "resume", **REASON})
        assert again.json()["code"] == "CONFLICT"
        await post(admin, "workers/w1/control", action="drain")
        missing = await admin.post(f"{OPS}/workers/w9/control", json={"action": "pause", **REASON})
        assert missing.json()["code"] == "WORKER_NOT_FOUND"


async def test_worker_in_the_process_of_the_server_is_not_drained(published: PublishedProblem) -> None:
    registry = published.api.services.ops.registry
    await registry.register(ProcessInfo("up", "host", 7, "1", 2, health=ProcessHealth.READY))
    await registry.register(ProcessInfo("api", "host", 7, "1", role=ProcessRole.API, health=ProcessHealth.READY))
    async with published.user_client("admin") as admin:
        refused = await admin.post(f"{OPS}/workers/up/control", json={"action": "drain", **REASON})
        assert refused.json()["code"] == "CONFLICT"
        await post(admin, "workers/up/control", action="pause")


async def test_dead_letters_are_replayed_and_discarded_by_filter(published: PublishedProblem) -> None:
    store = published.api.store
    async with published.user_client() as user, published.user_client("admin") as admin:
        jobs = [(await published.submit(user))["job_id"] for _ in range(3)]
        name = (await user.get("/api/v1/me")).json()["name"]
        other = await store.enqueue_many(2)
        await store.dead_letter(jobs[:2], "NO_HANDLER")
        await store.dead_letter(jobs[2:], "INTERNAL")
        await store.dead_letter(other, "NO_HANDLER")

        async def total(**match: str) -> int:
            return int((await admin.get(f"{OPS}/dead-letters", params=match)).json()["total"])

        assert (await total(), await total(kind="judge"), await total(user=name)) == (5, 3, 3)
        assert (await total(error_code="NO_HANDLER"), await total(problem="sum", error_code="INTERNAL")) == (4, 1)
        refused = await admin.post(f"{OPS}/dead-letters:replay-matching", json=REASON)
        assert refused.json()["fields"]["field"] == "every"
        match = {"problem": "sum", "error_code": "NO_HANDLER", **REASON}
        replayed = (await admin.post(f"{OPS}/dead-letters:replay-matching", json=match)).json()["jobs"]
        assert len(replayed) == 2
        unknown = await admin.post(f"{OPS}/dead-letters:discard-matching", json={"user": "nobody", **REASON})
        assert unknown.json()["code"] == "USER_NOT_FOUND"
        gone = await admin.post(f"{OPS}/dead-letters:discard-matching", json={"every": True, **REASON})
        assert (gone.json(), await total()) == ({"discarded": 3}, 0)


def test_pause_concerns_everything_a_language_or_a_problem() -> None:
    assert is_judging_paused({("all", "")}, "cpp17", "p1")
    assert is_judging_paused({("language", "cpp17")}, "cpp17")
    assert is_judging_paused({("problem", "p1")}, "cpp17", "p1")
    assert not is_judging_paused({("problem", "p1"), ("language", "java")}, "cpp17", "p2")
    assert not is_judging_paused(frozenset(), "cpp17", "p2")
