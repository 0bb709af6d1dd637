"""Over HTTP: what is answered while more jobs wait than may, and what the log says of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.verdict import Verdict
from adjudge.services.admission import AdmissionController
from tests.support.asgi_app import make_app
from tests.support.log_capture import capture_logs
from tests.support.problem_packages import icpc_package, zip_files
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness

FULL: dict[str, object] = {
    **OPEN_GATE,
    "admission.high_watermark": 2,
    "admission.low_watermark": 1,
    "admission.later_sec": 7,
}


@asynccontextmanager
async def problem_with_full_queue(store: StoreHarness, folder: Path, **more: object) -> AsyncIterator[PublishedProblem]:
    """More jobs wait than may."""
    async with make_app(store, folder, FULL | {f"admission.{name}": value for name, value in more.items()}) as api:
        published_problem = await publish_problem(api)
        await api.store.enqueue_many(3)
        yield published_problem


def summary(answer: httpx.Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json().get("code", ""), answer.headers.get("Retry-After")


async def test_submission_is_refused_with_retry_after_while_the_queue_is_full(
    store: StoreHarness, tmp_path: Path
) -> None:
    async with (
        problem_with_full_queue(store, tmp_path) as published_problem,
        published_problem.user_client() as client,
        published_problem.user_client("admin") as admin,
    ):
        refused = await client.post("/api/v1/submissions", json=published_problem.submission_body())
        assert summary(refused) == (429, "QUEUE_FULL", "7")
        assert refused.json()["fields"]["waiting"] == "3"
        batch = await client.post(
            "/api/v1/submissions:batch", json={"items": [published_problem.submission_body()] * 2}
        )
        assert summary(batch) == (429, "QUEUE_FULL", "7")
        execution = {"language": "cpp", "source": "int main() {}"}
        assert summary(await client.post("/api/v1/executions", json=execution)) == (429, "QUEUE_FULL", "7")
        assert (await admin.post("/api/v1/submissions", json=published_problem.submission_body())).status_code == 202
        rows = await published_problem.api.store.rows("SELECT id FROM submissions")
        assert len(rows) == 1, "what was refused is nowhere"


async def test_submission_is_taken_for_later_with_retry_after(store: StoreHarness, tmp_path: Path) -> None:
    async with (
        problem_with_full_queue(store, tmp_path, overload="accept_later") as published_problem,
        published_problem.user_client() as client,
    ):
        taken = await client.post("/api/v1/submissions", json=published_problem.submission_body())
        assert summary(taken) == (202, "", "7")
        (row,) = await published_problem.api.store.rows(
            "SELECT available_at - jobs.created_at AS later FROM outbox JOIN jobs "
            "ON jobs.id = job_id WHERE job_id = :id",
            id=taken.json()["job_id"],
        )
        assert row["later"] == 7_000_000


async def test_work_that_brings_more_jobs_is_refused_too(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with (
        problem_with_full_queue(sqlite_store, tmp_path) as published_problem,
        published_problem.user_client("admin") as admin,
    ):
        made = (await admin.post("/api/v1/submissions", json=published_problem.submission_body())).json()
        await published_problem.finish(made["job_id"], Verdict.WA)
        dag = {"nodes": [{"id": "a", "type": "noop"}]}
        assert (await admin.post("/api/v1/chains", json={"name": "one", "dag": dag})).status_code == 201
        rejudge = {"filter": {"problem": "sum"}, "reason": "a wrong test"}
        async with published_problem.user_client("judge") as judge, published_problem.user_client("setter") as setter:
            asked: list[tuple[httpx.AsyncClient, str, dict[str, Any]]] = [
                (judge, "/api/v1/rejudge-batches", {"json": rejudge}),
                (setter, "/api/v1/problems:import", {"content": zip_files(icpc_package("Sum"))}),
                (setter, "/api/v1/chains/one:start", {"json": {}}),
            ]
            for client, path, body in asked:
                assert summary(await client.post(path, **body)) == (429, "QUEUE_FULL", "7"), path
                assert (await admin.post(path, **body)).status_code in (201, 202), path


async def test_decisions_are_logged_a_few_at_a_time(
    sqlite_store: StoreHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    async with (
        problem_with_full_queue(sqlite_store, tmp_path) as published_problem,
        published_problem.user_client() as client,
        published_problem.user_client("admin") as admin,
    ):
        gate: AdmissionController = published_problem.api.services.admission
        monkeypatch.setattr(gate._decisions, "_clock", lambda: now[0])
        with capture_logs() as stream:
            for who in [client] * 5 + [admin] * 2:
                await who.post("/api/v1/submissions", json=published_problem.submission_body())
            now[0] += 1.5
            await client.post("/api/v1/submissions", json=published_problem.submission_body())
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    decisions = [
        (line["decision"], line["reason"], line["left_out"]) for line in lines if line["event"] == "admission_decided"
    ]
    assert decisions == [("refused", "queue_full", 0), ("admitted", "ok", 0), ("refused", "queue_full", 4)]
