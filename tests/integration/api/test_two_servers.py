"""Two servers on one PostgreSQL and one Redis: what one writes, the other shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store import Tx
from adjudge.store.jobs.models import Fence, JobResult
from adjudge.store.judging.models import Judgement, NewSubmission
from adjudge.store.problems import queries as problem_queries
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.problem_packages import icpc_package, import_package, zip_files
from tests.support.servers import RedisServer
from tests.support.store_harness import StoreHarness, metric_value, open_store

ROOT = "/api/v1"
_ENVIRONMENTS = count(1)


@pytest.fixture(autouse=True)
def long_redis_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of the machine is no absence of Redis."""
    monkeypatch.setattr("adjudge.cache.redis_tier._PATIENCE_SEC", 120.0)


@pytest.fixture
async def servers(
    postgres_store: StoreHarness, redis_server: RedisServer, tmp_path: Path
) -> AsyncIterator[tuple[AsgiApp, AsgiApp]]:
    environment = f"two-{next(_ENVIRONMENTS)}"
    overrides: dict[str, object] = {"jobs.redis_url": redis_server.url, "server.environment": environment}
    async with (
        open_store(postgres_store.url) as other_store,
        make_app(postgres_store, tmp_path, overrides) as here,
        make_app(other_store, tmp_path, overrides) as there,
    ):
        yield here, there


async def soon(is_so: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it comes to be so; how soon depends on what else the machine does."""
    try:
        async with asyncio.timeout(120):
            while not await is_so():
                await asyncio.sleep(0.01)
    except TimeoutError:
        return False
    return True


async def test_cache_revision_bump_invalidation(servers: tuple[AsgiApp, AsgiApp], tmp_path: Path) -> None:
    here, there = servers
    _, setter = await here.user("setter")
    await import_package(here, tmp_path, setter, zip_files(icpc_package("Sum")), slug="sum", publish=True)
    shared_hits = metric_value("cache_requests_total", entity="problem:item", tier="l2", result="hit")
    async with here.client(setter) as writer, there.client() as reader, here.client() as neighbour:
        await (
            there.services.problems.cache.revisions.refresh()
        )  # until then what it reads is kept as of an older revision
        first = await reader.get(f"{ROOT}/problems/sum")
        assert first.status_code == 200
        assert (await neighbour.get(f"{ROOT}/problems/sum")).headers["etag"] == first.headers["etag"]
        assert metric_value("cache_requests_total", entity="problem:item", tier="l2", result="hit") == shared_hits + 1
        listed = await reader.get(f"{ROOT}/problems")
        patch = {"version": 2, "title": "Another sum"}
        assert (await writer.patch(f"{ROOT}/problems/sum", json=patch)).status_code == 200

        own = await neighbour.get(f"{ROOT}/problems/sum", headers={"If-None-Match": first.headers["etag"]})
        assert (own.status_code, own.json()["title"]) == (200, "Another sum")

        async def is_new() -> bool:
            known = {"If-None-Match": first.headers["etag"]}
            return (await reader.get(f"{ROOT}/problems/sum", headers=known)).status_code == 200

        assert await soon(is_new)
        assert (await reader.get(f"{ROOT}/problems/sum")).json()["title"] == "Another sum"
        again = await reader.get(f"{ROOT}/problems", headers={"If-None-Match": listed.headers["etag"]})
        assert (again.status_code, again.json()["items"][0]["title"]) == (200, "Another sum")


async def _status_is(client: httpx.AsyncClient, status: int) -> bool:
    return (await client.get(f"{ROOT}/problems/sum")).status_code == status


@pytest.mark.slow
async def test_poll_finds_what_a_lost_notification_missed(servers: tuple[AsgiApp, AsgiApp], tmp_path: Path) -> None:
    here, there = servers
    _, setter = await here.user("setter")
    await import_package(here, tmp_path, setter, zip_files(icpc_package("Sum")), slug="sum", publish=True)
    async with there.client() as reader:
        assert await soon(lambda: _status_is(reader, 200))
        # Written at a console, where nobody rings: the counter and the names, as a bump does.
        await here.store.write("UPDATE problems SET title = 'By hand' WHERE slug = 'sum'")
        await here.store.write("UPDATE cache_revisions SET revision = revision + 100")

        async def is_new() -> bool:
            return bool((await reader.get(f"{ROOT}/problems/sum")).json()["title"] == "By hand")

        assert await soon(is_new)


async def test_status_cache_freshness_under_5s(
    servers: tuple[AsgiApp, AsgiApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict is seen by the other server within 5 seconds of being written, though it had cached the status."""
    here, there = servers
    _, setter = await here.user("setter")
    user_id, contestant = await here.user("contestant")
    await import_package(here, tmp_path, setter, zip_files(icpc_package("Sum")), slug="sum", publish=True)
    submission_id = new_id()

    async def submit(tx: Tx) -> str:
        problem = await problem_queries.find(tx, "sum")
        assert problem is not None
        assert problem.published_revision_id is not None
        revision_id = problem.published_revision_id
        new = NewSubmission(submission_id, user_id, problem.id, revision_id, "cpp", "0" * 64, 1)
        return (await here.store.submissions.submit(tx, [new]))[0].job_id

    job_id = await here.store.transact(submit)
    async with there.client(contestant) as reader:
        seen = await reader.get(f"{ROOT}/submissions/{submission_id}")
        assert seen.json()["status"] == "pending"
        job = (await here.store.claim(job_id)).done[0]
        await _judge(here.store, job_id, job.attempt_id)
        clock = there.services.problems.cache._clock
        monkeypatch.setattr(there.services.problems.cache, "_clock", lambda: clock() + 5)
        assert (await reader.get(f"{ROOT}/submissions/{submission_id}")).json()["status"] == "accepted"


async def test_verdict_ends_the_cached_status_on_every_server(
    servers: tuple[AsgiApp, AsgiApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks of both caches stand still: by its time alone the cached status would stay for ever."""
    here, there = servers
    _, setter = await here.user("setter")
    _, contestant = await here.user("contestant")
    await import_package(here, tmp_path, setter, zip_files(icpc_package("Sum")), slug="sum", publish=True)
    monkeypatch.setattr("adjudge.services.submissions._REPORT_SEC", 600.0)
    for server in servers:
        monkeypatch.setattr(server.services.problems.cache, "_clock", lambda: 1e9)
    async with here.client(contestant) as one, there.client(contestant) as other:
        body = {"problem": "sum", "language": "cpp", "source": "int main() {}"}
        made = (await one.post(f"{ROOT}/submissions", json=body)).json()
        place = f"{ROOT}/submissions/{made['submission_id']}"
        assert [(await client.get(place)).json()["status"] for client in (one, other)] == ["pending", "pending"]
        job = (await here.store.claim(made["job_id"])).done[0]
        await _judge(here.store, made["job_id"], job.attempt_id)
        for client in (one, other):

            async def is_judged(client: httpx.AsyncClient = client) -> bool:
                return bool((await client.get(place)).json()["status"] == "accepted")

            assert await soon(is_judged)


async def _judge(store: StoreHarness, job_id: str, attempt_id: int) -> None:
    finish = JobResult(Fence(job_id, attempt_id, "w1"), typed_result=Judgement(Verdict.AC))
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [finish]))
