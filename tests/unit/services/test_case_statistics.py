"""Results by test: counted from what judging wrote down, for those who may see drafts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import CaseResultRow, Judgement
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, add_revision, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness

PLACE = "/api/v1/problems/sum/revisions/{}/tests"


@pytest.fixture
async def published_problem(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield await publish_problem(api)


async def judged(published_problem: PublishedProblem, *cases: CaseResultRow) -> None:
    async with published_problem.user_client() as author:
        made = await published_problem.submit(author)
    started = await published_problem.claim(made["job_id"])
    finish = JobResult(started.fence, typed_result=Judgement(cases[-1].verdict, cases=cases))
    await published_problem.api.store.transact(
        lambda tx: published_problem.api.store.jobs.finish_and_claim_next(tx, [finish])
    )


async def test_verdicts_of_each_test_are_counted(published_problem: PublishedProblem) -> None:
    await judged(
        published_problem, CaseResultRow("b", Verdict.AC, 10, 10, 100), CaseResultRow("a", Verdict.WA, 20, 20, 900)
    )
    await judged(
        published_problem, CaseResultRow("b", Verdict.AC, 30, 30, 50), CaseResultRow("a", Verdict.AC, 5, 5, 100)
    )
    await judged(published_problem, CaseResultRow("b", Verdict.TLE, 1_000, 1_500, 50))
    async with (
        published_problem.api.client(published_problem.setter_token) as setter,
        published_problem.user_client() as contestant,
    ):
        found = (await setter.get(PLACE.format(1))).json()["items"]
        assert found == [
            {"name": "b", "runs": 3, "verdicts": {"AC": 2, "TLE": 1}, "time_ms": 1_000, "mem_kb": 100},
            {"name": "a", "runs": 2, "verdicts": {"AC": 1, "WA": 1}, "time_ms": 20, "mem_kb": 900},
        ]
        page = (await setter.get("/manage/problems/sum/revisions/1")).text
        assert "Results by test" in page
        assert "Time limit exceeded" in page
        await add_revision(published_problem)
        assert (await setter.get(PLACE.format(2))).json()["items"] == [], "nothing was judged on it"
        assert "Results by test" not in (await setter.get("/manage/problems/sum/revisions/2")).text
        assert (await setter.get(PLACE.format(3))).status_code == 404
        assert (await contestant.get(PLACE.format(1))).status_code == 404
