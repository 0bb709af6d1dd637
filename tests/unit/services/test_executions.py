"""Running programs without a problem: taken, waited for, read by their owner alone, forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.relay.retention import Retention, RetentionOptions
from adjudge.store.jobs.metrics import request_fields
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.execution_models import FinishedExecution, FinishedExecutionRun
from adjudge.worker.handlers.execute import encode_outputs
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import OPEN_GATE
from tests.support.store_harness import StoreHarness, fence_of

ROOT = "/api/v1/executions"
BODY = {"language": "python3", "source": "print(1)\n"}


@pytest.fixture
async def api_open(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """A server that lets everybody in, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield api


async def finish(api: AsgiApp, job_id: str, outputs: list[str]) -> None:
    """Run it, as a worker would."""
    (job,) = (await api.store.claim(job_id)).done
    runs = tuple(
        FinishedExecutionRun(ordinal, Verdict.AC, 5, 6, 1_024, 0, 0, None, output, "", False, False)
        for ordinal, output in enumerate(outputs, 1)
    )
    outcome = FinishedExecution(Verdict.AC, "", runs)
    await api.store.transact(
        lambda tx: api.store.jobs.finish_and_claim_next(tx, [JobResult(fence_of(job), typed_result=outcome)])
    )


async def test_an_execution_is_taken_run_and_read(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client, api.as_role("admin") as other:
        made = await client.post(ROOT, json=BODY | {"stdins": ["1", "2"]})
        assert (made.status_code, made.json()["state"]) == (202, "pending")
        place = f"{ROOT}/{made.json()['id']}"
        waiting = asyncio.create_task(client.get(place, params={"wait": 60}))
        while not api.services.events.feed.waiter_count:
            await asyncio.sleep(0)
        await finish(api, made.json()["job_id"], ["1\n", "2\n"])
        ended = (await waiting).json()
        assert (ended["state"], ended["verdict"]) == ("finished", "AC")
        assert [run["stdout"] for run in ended["runs"]] == ["1\n", "2\n"]
        assert {run["encoding"] for run in ended["runs"]} == {"utf-8"}
        for method, path in (("GET", place), ("POST", f"{place}:cancel")):
            nosy = await other.request(method, path)
            assert (nosy.status_code, nosy.json()["code"]) == (404, "EXECUTION_NOT_FOUND")
        assert (await other.get(ROOT)).json()["items"] == []
        assert [item["id"] for item in (await client.get(ROOT)).json()["items"]] == [made.json()["id"]]
        await api.store.clock.advance(ms=86_400_000)
        assert await Retention(api.store.database, RetentionOptions(deliveries_ms=1)).run_once() >= 1
        assert (await client.get(place)).status_code == 404
        assert await api.store.rows("SELECT ordinal FROM execution_runs") == []


async def test_lines_about_an_execution_s_job_say_whose_it_is_and_by_which_request_it_came(api_open: AsgiApp) -> None:
    api = api_open
    user, secret = await api.user("service")
    async with api.client(secret) as client:
        made = await client.post(ROOT, json=BODY)
    (row,) = await api.store.rows("SELECT payload FROM jobs")
    assert request_fields(json.loads(row["payload"])) == {
        "submission_id": None,
        "user_id": user,
        "language": BODY["language"],
        "request_id": made.headers["X-Request-Id"],
    }


async def test_the_same_key_stands_for_the_same_executions(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client, api.as_role("service") as other:
        key = {"Idempotency-Key": "once"}
        answers = await asyncio.gather(*(client.post(ROOT, json=BODY, headers=key) for _ in range(3)))
        assert {answer.status_code for answer in answers} == {202}
        (execution_id,) = {answer.json()["id"] for answer in answers}
        await finish(api, answers[0].json()["job_id"], ["1\n"])
        again = (await client.post(ROOT, json=BODY, headers=key, params={"wait": 60})).json()
        assert (again["id"], again["state"]) == (execution_id, "finished")
        for path, body in ((ROOT, BODY | {"stdin": "2"}), (f"{ROOT}:batch", {"items": [BODY]})):
            reused = await client.post(path, json=body, headers=key)
            assert (reused.status_code, reused.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
        assert (await other.post(ROOT, json=BODY, headers=key)).json()["id"] != execution_id, "a key is a user's own"
        two = {"items": [BODY, BODY]}
        batches = [(await client.post(f"{ROOT}:batch", json=two, headers={"Idempotency-Key": "b"})) for _ in range(2)]
        ids = [[item["id"] for item in batch.json()["items"]] for batch in batches]
        assert ids[0] == ids[1]
        assert len(set(ids[0])) == 2
        assert len(await api.store.rows("SELECT id FROM executions")) == 4


async def test_a_batch_and_a_cancel(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("admin") as client:
        items = [BODY | {"stdin": str(number)} for number in range(3)]
        made = (await client.post(f"{ROOT}:batch", json={"items": items})).json()["items"]
        assert len({item["id"] for item in made}) == 3
        canceled = await client.post(f"{ROOT}/{made[0]['id']}:cancel")
        assert canceled.json()["state"] == "canceled"
        slow = await client.get(f"{ROOT}/{made[1]['id']}", params={"wait": 0.02})
        assert slow.json()["state"] == "pending"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"language": "klingon"}, "language"),
        ({"source": ""}, "source"),
        ({"source": "x" * 300_000}, "source"),
        ({"stdin": "a\0"}, "stdin"),
        ({"stdins": ["x"] * 101}, "stdins"),
        ({"limits": {"cpu_ms": 10_001}}, "limits.cpu_ms"),
        ({"limits": {"memory_mib": 2_000}}, "limits.memory_mib"),
        ({"limits": {"wall_ms": 100_000}}, "limits.wall_ms"),
    ],
)
async def test_what_is_wrong_is_named(api: AsgiApp, fields: dict[str, Any], field: str) -> None:
    async with api.as_role("admin") as client:
        answer = await client.post(ROOT, json=BODY | fields)
        assert (answer.status_code, answer.json()["fields"]["field"]) == (400, field)


def test_outputs_that_are_no_text_travel_in_base64() -> None:
    assert encode_outputs("é".encode(), b"") == ("é", "", False)
    assert encode_outputs(b"\xff", b"a") == ("/w==", "YQ==", True)
    assert encode_outputs(b"a\0", b"") == ("YQA=", "", True)


async def test_what_would_hold_a_worker_for_long_is_refused(api: AsgiApp) -> None:
    async with api.as_role("contestant") as client:
        request = {"language": "python3", "source": "print(1)", "stdins": [""] * 50, "limits": {"wall_ms": 20_000}}
        long = await client.post("/api/v1/executions", json=request)
        assert (long.status_code, long.json()["fields"]["field"]) == (400, "limits.wall_ms")
        many = {"items": [{**request, "limits": {"wall_ms": 1_000}}] * 3}
        refused = await client.post("/api/v1/executions:batch", json=many)
        assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "items")
