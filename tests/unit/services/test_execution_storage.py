"""How much of the database one user's executions may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import ResourceUsage
from adjudge.judge.execution import ExecutionRunResult
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.execution_models import FinishedExecution, FinishedExecutionRun
from adjudge.worker.handlers.execute import _cut
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import OPEN_GATE
from tests.support.store_harness import StoreHarness, fence_of

ROOT = "/api/v1/executions"
BODY = {"language": "python3", "source": "x" * 1_000, "stdin": "y" * 1_000}
RESERVED = 2_000 + 3_000 * 4 // 3 + 8


@pytest.fixture
async def bounded(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """A server that keeps two executions of a user while they run."""
    given = OPEN_GATE | {"executions.output_bytes": 3_000, "executions.user_bytes": 2 * RESERVED}
    async with make_app(store, tmp_path, given) as api:
        yield api


async def finish(api: AsgiApp, job_id: str, kept_bytes: int) -> None:
    (job,) = (await api.store.claim(job_id)).done
    run = FinishedExecutionRun(1, Verdict.AC, 5, 6, 1_024, 0, 0, None, "", "", False, False)
    done = JobResult(fence_of(job), typed_result=FinishedExecution(Verdict.AC, "", (run,), kept_bytes))
    await api.store.transact(lambda tx: api.store.jobs.finish_and_claim_next(tx, [done]))


async def test_a_user_s_executions_are_bounded_with_what_may_come_of_those_under_way(bounded: AsgiApp) -> None:
    async with bounded.as_role("contestant") as client, bounded.as_role("contestant") as other:
        first = await client.post(ROOT, json=BODY)
        assert (await client.post(ROOT, json=BODY)).status_code == 202
        refused = await client.post(ROOT, json=BODY)
        assert (refused.status_code, refused.json()["code"]) == (429, "STORAGE_FULL")
        assert "executions.user_bytes" in refused.json()["detail"]
        assert int(refused.headers["Retry-After"]) > 0
        assert (await other.post(ROOT, json=BODY)).status_code == 202
        await finish(bounded, first.json()["job_id"], 10)
        assert (await client.post(ROOT, json=BODY)).status_code == 429
    assert sum(row["kept_bytes"] for row in await bounded.store.rows("SELECT kept_bytes FROM executions")) == (
        2 * RESERVED + 10
    )


async def test_simultaneous_calls_do_not_exceed_the_bound(bounded: AsgiApp) -> None:
    async with bounded.as_role("contestant") as client:
        answers = await asyncio.gather(*[client.post(ROOT, json=BODY) for _ in range(8)])
    assert sorted(answer.status_code for answer in answers) == [202] * 2 + [429] * 6


async def test_quota_is_released_when_an_execution_ends_with_less_output(bounded: AsgiApp) -> None:
    small = BODY | {"source": "x", "stdin": ""}
    async with bounded.as_role("contestant") as client:
        for _ in range(5):
            made = await client.post(ROOT, json=small)
            assert made.status_code == 202
            await finish(bounded, made.json()["job_id"], 1)


async def test_a_call_that_could_never_fit_is_refused_for_good(bounded: AsgiApp) -> None:
    async with bounded.as_role("contestant") as client:
        refused = await client.post(f"{ROOT}:batch", json={"items": [BODY] * 3})
        assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_INPUT")
        assert "executions.user_bytes" in refused.text


async def test_programs_without_limits_have_no_bound(bounded: AsgiApp) -> None:
    async with bounded.as_role("service") as client:
        assert (await client.post(f"{ROOT}:batch", json={"items": [BODY] * 3})).status_code == 202


def test_outputs_are_cut_to_what_is_kept_of_all_runs_together() -> None:
    figures = ResourceUsage(Verdict.AC, 1, 1, 1, 0, 0, None)
    runs = [ExecutionRunResult(figures, b"a" * 6, b"b" * 6, is_truncated=False) for _ in range(3)]
    cut = list(_cut(runs, 15))
    assert [(len(run.stdout), len(run.stderr), run.is_truncated) for run in cut] == [
        (6, 6, False),
        (3, 0, True),
        (0, 0, True),
    ]
