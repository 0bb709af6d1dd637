"""Evaluations in bulk: added once, read in completion order by their owner alone, canceled, expired."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.problem import ProblemMode
from adjudge.domain.states import JobStatus
from adjudge.domain.verdict import Verdict
from adjudge.relay.retention import Retention, RetentionOptions
from adjudge.services import evaluation_records
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging import evaluations
from adjudge.store.judging.evaluation_models import FinishedEvaluation
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import OPEN_GATE, add_problem, add_revision, publish_problem
from tests.support.store_harness import StoreHarness, fence_of

ROOT = "/api/v1/evaluations"
RECORD = {"source": "print(1)", "tests": [{"input": "", "output": "1"}]}


@pytest.fixture
async def api_open(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """A server that lets everybody in, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield api


def body(*records: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def numbered(*ids: object) -> bytes:
    return body(*({"id": record_id, **RECORD} for record_id in ids))


async def add(client: httpx.AsyncClient, content: bytes, name: str = "night") -> httpx.Response:
    return await client.post(ROOT, params={"name": name}, content=content)


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


async def finish(api: AsgiApp, record_ids: Sequence[str], verdict: Verdict = Verdict.AC) -> None:
    """Evaluate records, as a worker would: all in one transaction."""
    results = []
    for record_id in record_ids:
        row = await api.store.row("SELECT job_id, record FROM evaluation_items WHERE record_id = :id", id=record_id)
        (job,) = (await api.store.claim(row["job_id"])).done
        document = json.dumps({"id": record_id, "verdict": verdict.value})
        outcome = FinishedEvaluation(verdict, document, len(row["record"]))
        results.append(JobResult(fence_of(job), typed_result=outcome))
    await api.store.transact(lambda tx: api.store.jobs.finish_and_claim_next(tx, results))


async def test_records_are_added_once_and_results_come_in_completion_order(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client, api.as_role("admin") as other:
        made = await add(client, numbered("a", "b"))
        assert (made.status_code, made.json()["total"], made.json()["added"]) == (202, 2, 2)
        again = (await add(client, numbered("a", "b", 3))).json()
        assert (again["id"], again["total"], again["added"], again["known"]) == (made.json()["id"], 3, 1, 2)
        place = f"{ROOT}/{again['id']}"
        more = await client.post(f"{place}/records", content=numbered("b", "d"))
        assert (more.status_code, more.json()["total"], more.json()["added"]) == (202, 4, 1)
        assert len(await api.store.rows("SELECT id FROM jobs WHERE kind = 'evaluate' AND priority = 3")) == 4
        await finish(api, ["b"], Verdict.WA)
        await finish(api, ["3", "a"])
        found = lines(await client.get(f"{place}/results"))
        assert [(item["sequence"], item["verdict"]) for item in found] == [(1, "WA"), (2, "AC"), (3, "AC")]
        assert found[0]["id"] == "b"
        assert lines(await client.get(f"{place}/results", params={"after": 1, "limit": 1})) == [found[1]]
        read = (await client.get(place)).json()
        assert (read["finished"], read["verdicts"]) == (3, {"AC": 2, "WA": 1, "pending": 1})
        assert [item["id"] for item in (await client.get(ROOT)).json()["items"]] == [again["id"]]
        for method, path in (
            ("GET", place),
            ("GET", f"{place}/results"),
            ("POST", f"{place}/records"),
            ("POST", f"{place}:cancel"),
        ):
            nosy = await other.request(method, path)
            assert (nosy.status_code, nosy.json()["code"]) == (404, "EVALUATION_NOT_FOUND")
        assert (await other.get(ROOT)).json()["items"] == []
        own = await add(other, numbered("a"))
        assert own.json()["id"] != again["id"], "a name is a user's own"


async def test_a_waiting_reader_gets_the_next_result(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client:
        place = f"{ROOT}/{(await add(client, numbered('a', 'b'))).json()['id']}"
        waiting = asyncio.create_task(client.get(f"{place}/results", params={"wait": 60}))
        await asyncio.sleep(0)
        await finish(api, ["b"])
        assert [item["id"] for item in lines(await waiting)] == ["b"]
        assert lines(await client.get(f"{place}/results", params={"after": 1, "wait": 0.02})) == []
        await finish(api, ["a"])
        ended = await client.get(f"{place}/results", params={"after": 2, "wait": 60})
        assert lines(ended) == [], "no wait when all records have a result"


async def test_another_record_with_the_same_id_is_refused_and_nothing_is_added(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client:
        await add(client, numbered("a"))
        refused = await add(client, body({"id": "new", **RECORD}, {"id": "a", **RECORD, "source": "print(2)"}))
        assert (refused.status_code, refused.json()["fields"]["field"]) == (409, "id")
        assert "'a'" in refused.json()["detail"]
        reordered = body(dict(reversed({"id": "a", **RECORD}.items())))
        assert (await add(client, reordered)).json()["known"] == 1
        assert await api.store.row("SELECT total FROM evaluations") == {"total": 1}
        assert len(await api.store.rows("SELECT id FROM jobs")) == 1


async def test_two_requests_at_once_add_a_record_once(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client:
        answers = await asyncio.gather(*(add(client, numbered("a", "b")) for _ in range(4)))
        assert [answer.status_code for answer in answers] == [202] * 4
        assert sum(answer.json()["added"] for answer in answers) == 2
        assert len(await api.store.rows("SELECT id FROM jobs")) == 2


async def test_cancel_ends_the_pending_records(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client:
        place = f"{ROOT}/{(await add(client, numbered('a', 'b', 'c'))).json()['id']}"
        await finish(api, ["b"])
        canceled = (await client.post(f"{place}:cancel")).json()
        assert (canceled["finished"], canceled["verdicts"]) == (3, {"AC": 1, "error": 2})
        found = lines(await client.get(f"{place}/results", params={"after": 1}))
        assert {(item["id"], item["error"]) for item in found} == {("a", "Canceled."), ("c", "Canceled.")}


async def test_a_job_that_failed_and_is_replayed_gives_a_second_result_and_counts_once(api_open: AsgiApp) -> None:
    api, store = api_open, api_open.store
    async with api.as_role("service") as client:
        place = f"{ROOT}/{(await add(client, numbered('a'))).json()['id']}"
        (job,) = (await store.claim((await store.row("SELECT job_id FROM evaluation_items"))["job_id"])).done
        failed = JobResult(fence_of(job), JobStatus.FAILED, error_code="X", error="broken")
        await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [failed]))
        assert "internal error" in lines(await client.get(f"{place}/results"))[0]["error"]
        letter = await store.row("SELECT id FROM dead_letters")
        (replay,) = (
            await store.transact(lambda tx: store.jobs.replay(tx, [letter["id"]], actor="x", note=""))
        ).values()
        (again,) = (await store.claim(str(replay))).done
        outcome = FinishedEvaluation(Verdict.AC, json.dumps({"id": "a", "verdict": "AC"}), 0)
        results = [JobResult(fence_of(again), typed_result=outcome)]
        await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, results))
        assert [item["sequence"] for item in lines(await client.get(f"{place}/results"))] == [2]
        assert (await client.get(place)).json()["finished"] == 1


async def test_records_that_failed_or_were_canceled_are_evaluated_again_when_sent_again(api_open: AsgiApp) -> None:
    api, store = api_open, api_open.store
    async with api.as_role("service") as client:
        place = f"{ROOT}/{(await add(client, numbered('failed', 'canceled', 'done'))).json()['id']}"
        failed = await store.row("SELECT job_id FROM evaluation_items WHERE record_id = 'failed'")
        (job,) = (await store.claim(failed["job_id"])).done
        broken = JobResult(fence_of(job), JobStatus.FAILED, error_code="X", error="broken")
        await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [broken]))
        await finish(api, ["done"])
        assert (await client.post(f"{place}:cancel")).json()["finished"] == 3
        again = (await add(client, numbered("failed", "canceled", "done"))).json()
        assert (again["added"], again["known"], again["retried"], again["finished"]) == (0, 3, 2, 1)
        assert [item["id"] for item in lines(await client.get(f"{place}/results"))] == ["done"]
        kept = (await store.row("SELECT kept_bytes FROM evaluations"))["kept_bytes"]
        await finish(api, ["failed", "canceled"])
        assert (await client.get(place)).json()["verdicts"] == {"AC": 3}
        sizes = await store.rows("SELECT length(record) + length(result) AS size FROM evaluation_items")
        row = await store.row("SELECT kept_bytes FROM evaluations")
        assert row["kept_bytes"] == sum(item["size"] for item in sizes)
        assert kept > row["kept_bytes"], "the records were kept until they had a result"
        (replay,) = (await _replay(store)).values()
        (late,) = (await store.claim(str(replay))).done
        results = [JobResult(fence_of(late), JobStatus.FAILED, error_code="X", error="broken")]
        await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, results))
        assert (await client.get(place)).json()["verdicts"] == {"AC": 3}, "a result is not replaced by an error"


async def _replay(store: StoreHarness) -> Mapping[str, str | None]:
    letter = await store.row("SELECT id FROM dead_letters")
    return await store.transact(lambda tx: store.jobs.replay(tx, [letter["id"]], actor="x", note=""))


async def test_records_of_a_problem_pin_its_published_revision(api_open: AsgiApp) -> None:
    problem = await publish_problem(api_open)
    async with api_open.as_role("contestant") as client, api_open.client(problem.setter_token) as setter:
        record = {"id": "a", "language": "cpp", "source": "int main() {}", "problem": "sum"}
        assert (await add(client, body(record, {**record, "id": "b", "revision": 1}))).status_code == 202
        newer = await add_revision(problem)
        assert (await add(client, body({**record, "id": "c"}))).status_code == 202
        jobs = await api_open.store.rows("SELECT payload FROM jobs ORDER BY id")
        pinned = {item["record_id"]: item["revision_id"] for item in map(_payload, jobs)}
        assert pinned == {"a": problem.revision_id, "b": problem.revision_id, "c": newer}
        old = await add(client, body({**record, "id": "d", "revision": 1}))
        assert old.json()["fields"]["field"] == "revision", "no longer published"
        assert (await add(setter, body({**record, "id": "d", "revision": 1}))).status_code == 202
        none = await add(setter, body({**record, "id": "e", "revision": 9}))
        assert none.json()["fields"] == {"field": "revision", "line": "1"}


def _payload(row: Mapping[str, Any]) -> dict[str, Any]:
    found = row["payload"]
    return dict(json.loads(found) if isinstance(found, str) else found)


async def test_records_of_a_problem_need_the_right_to_submit(api_open: AsgiApp) -> None:
    problem = await publish_problem(api_open)
    await add_problem(problem, "draft", is_published=False)
    await add_problem(problem, "python", languages=("python3",))
    await add_problem(problem, "outputs", mode=ProblemMode.SUBMIT_ANSWER)
    record = {"id": "a", "language": "cpp", "source": "int main() {}"}

    async def field_of(client: httpx.AsyncClient, **fields: Any) -> tuple[int, str]:
        answer = await add(client, body({**record, **fields}))
        return answer.status_code, answer.json()["fields"].get("field", "")

    async with api_open.as_role("contestant") as client, api_open.client(problem.setter_token) as setter:
        assert await field_of(client, problem="draft") == (400, "problem")
        assert await field_of(client, problem="draft", revision=1) == (400, "problem")
        assert await field_of(client, problem="python") == (400, "language")
        assert await field_of(client, problem="outputs") == (400, "problem")
        assert await field_of(client, problem="sum", source="/" * 100_001) == (400, "source")
        assert await field_of(setter, problem="draft") == (400, "revision")
        assert (await add(setter, body({**record, "problem": "draft", "revision": 1}))).status_code == 202
    _, secret = await api_open.user("service", scopes=("execution:create",))
    async with api_open.client(secret) as client:
        refused = await add(client, body({**record, "problem": "sum"}))
        assert (refused.status_code, "submission:create" in refused.json()["detail"]) == (403, True)


async def test_expired_evaluations_are_deleted_with_their_jobs(api_open: AsgiApp) -> None:
    api = api_open
    async with api.as_role("service") as client:
        place = f"{ROOT}/{(await add(client, numbered('a', 'b', 'c'))).json()['id']}"
        await api.store.clock.advance(ms=8 * 86_400_000)
        await Retention(api.store.database, RetentionOptions(deliveries_ms=1)).run_once()
        assert (await client.get(place)).json()["total"] == 3, "unfinished ones stay"
        await finish(api, ["a", "b", "c"])
        assert await api.store.rows("SELECT record_id FROM evaluation_items WHERE record <> ''") == []
        first = await api.store.transact(lambda tx: evaluations.delete_expired(tx, limit=2))
        assert first == 3
        assert (await client.get(place)).status_code == 404
        fresh = await add(client, numbered("a"))
        assert fresh.json()["added"] == 1, "the name is free"
        await api.store.clock.advance(ms=8 * 86_400_000)
        await Retention(api.store.database, RetentionOptions(deliveries_ms=1)).run_once()
        assert len(await api.store.rows("SELECT record_id FROM evaluation_items")) == 1
        assert len(await api.store.rows("SELECT id FROM evaluations")) == 1
        assert len(await api.store.rows("SELECT id FROM jobs")) == 1


@pytest.mark.parametrize(
    ("content", "field", "line"),
    [
        (numbered("a") + b"{", "line", 2),
        (numbered("a") + b"\n[1]\n", "line", 3),
        (numbered("a", "a"), "id", 2),
        (body({"id": 1, **RECORD, "language": "klingon"}), "language", 1),
        (body({"id": 1, **RECORD, "limits": {"cpu_ms": 10_001}}), "limits.cpu_ms", 1),
        (body({"id": 1, **RECORD, "limits": {"cpu_ms": 1, "wall_ms": 30_001}}), "limits.wall_ms", 1),
        (body({"id": 1, **RECORD, "limits": {"memory_mib": 2_000}}), "limits.memory_mib", 1),
        (body({"id": 1, **RECORD, "tests": [{}] * 1_001}), "tests", 1),
        (body({"id": 1, "source": "x", "problem": "/etc"}), "problem", 1),
        (body({"id": 1, "source": "x", "problem": "sum", "stop": "never"}), "stop", 1),
        (body({"id": 1, "source": "x", "problem": "sum", "revision": "1"}), "revision", 1),
        (body({"id": 1, **RECORD, "revision": 1}), "revision", 1),
        (b"[" * 100_001, "line", 1),
    ],
    ids=range(13),
)
async def test_the_line_and_the_field_that_are_wrong_are_named(
    api: AsgiApp, content: bytes, field: str, line: int
) -> None:
    async with api.as_role("admin") as client:
        answer = await add(client, content)
        assert answer.status_code == 400, answer.text
        assert (answer.json()["fields"]["field"], answer.json()["fields"]["line"]) == (field, str(line))
        assert f"Line {line}: " in answer.json()["detail"]
        assert (await client.get(ROOT)).json()["items"] == []


async def test_sizes_are_limited_while_the_body_is_read(api: AsgiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_records, "LINE_BYTES_MAX", 200)
    monkeypatch.setattr(evaluation_records, "REQUEST_BYTES_MAX", 1_000)
    monkeypatch.setattr(evaluation_records, "RECORDS_MAX", 2)
    async with api.as_role("admin") as client:
        long = await add(client, numbered("a") + b" " * 201)
        assert (long.status_code, long.json()["fields"]["line"]) == (400, "2")
        large = await add(client, b"\n" * 1_001)
        assert (large.status_code, large.json()["fields"]["field"]) == (400, "body")
        many = await add(client, numbered(1, 2, 3))
        assert (many.status_code, many.json()["fields"]["field"]) == (400, "records")
        assert (await add(client, b"", name="")).status_code in {400, 422}


async def test_the_limits_of_users_hold_for_records(store: StoreHarness, tmp_path: Path) -> None:
    limits: dict[str, object] = {"admission.in_flight": 3, "executions.user_bytes": 1_000}
    async with make_app(store, tmp_path, limits) as api, api.as_role("contestant") as client:
        assert (await add(client, numbered(1, 2))).status_code == 202
        busy = await add(client, numbered(3, 4))
        assert (busy.status_code, busy.json()["code"]) == (429, "IN_FLIGHT_CAP")
        await finish(api, ["1", "2"])
        full = await add(client, body({"id": 5, **RECORD, "source": "#" * 1_000}))
        assert (full.status_code, full.json()["code"]) == (429, "STORAGE_FULL")
        assert (await add(client, numbered(6))).status_code == 202
