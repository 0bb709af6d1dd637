"""Numbers of SQL statements per page do not depend on the number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.store.engine.sqlite import SqliteTx
from adjudge.store.engine.statement import Statement
from tests.support.asgi_app import AsgiApp
from tests.support.problem_packages import icpc_package, import_package, zip_files
from tests.support.published_problem import PublishedProblem, publish_problem

_BESIDE = {"cache_revisions.select_since"}
"""Run periodically by the server itself, independent of requests."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the statements that run meanwhile, by name; what runs beside every page is left out."""
    seen: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fetch", "execute"):
            real = getattr(SqliteTx, name)

            async def count(tx: SqliteTx, statement: Statement, *rest: Any, real: Any = real, **named: Any) -> Any:
                if statement.name not in _BESIDE:
                    seen[statement.name] += 1
                return await real(tx, statement, *rest, **named)

            patch.setattr(SqliteTx, name, count)
        yield seen


async def cost(client: httpx.AsyncClient, path: str) -> Counter[str]:
    """What one more look at a page asks of the database."""
    assert (await client.get(path)).status_code == 200
    with counted() as seen:
        assert (await client.get(path)).status_code == 200
    return seen


@pytest.fixture
async def published_problem(pages: AsgiApp) -> PublishedProblem:
    return await publish_problem(pages)


async def test_statements_of_submission_list_do_not_depend_on_its_length(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        await published_problem.submit(client)
        short = await cost(client, "/submissions")
        for _ in range(9):
            await published_problem.submit(client)
        long = await cost(client, "/submissions")
        one = await cost(client, f"/submissions/{(await published_problem.submit(client))['submission_id']}")
    assert long == short
    assert short["submissions.page_of_user"] == 1
    assert max(one.values()) <= 2, one
    assert sum(one.values()) <= 10, one


async def test_statements_of_problem_list_do_not_depend_on_its_length(pages: AsgiApp, tmp_path: Path) -> None:
    _, setter = await pages.user("setter")
    await import_package(pages, tmp_path, setter, zip_files(icpc_package("One")), slug="one", publish=True)
    costs = []
    async with pages.as_role("contestant") as client:
        costs.append(await cost(client, "/problems"))
        for slug in ("two", "three", "four"):
            await import_package(pages, tmp_path, setter, zip_files(icpc_package(slug)), slug=slug, publish=True)
        costs.append(await cost(client, "/problems"))
        problem = await cost(client, "/problems/one")
    async with pages.client(setter) as own:
        batcher = await cost(own, "/manage")
    assert costs[0] == costs[1]
    assert max([0, *costs[0].values(), *problem.values(), *batcher.values()]) <= 2, (costs, problem, batcher)


async def test_problem_stats_are_counted_once_for_all_searches(
    published_problem: PublishedProblem,
) -> None:
    with counted() as seen:
        for role in ("contestant", "setter"):
            async with published_problem.user_client(role) as client:
                for words in ("sum", "su", "nothing", ""):
                    assert (await client.get("/problems", params={"q": words})).status_code == 200
    assert (seen["problems.count_by_problem"], seen["problems.list_newest"]) == (1, 8)


@pytest.mark.parametrize("path", ["/chains", "/rejudge", "/ops", "/ops/dead-letters", "/ops/audit", "/ops/secrets"])
async def test_staff_pages_do_not_repeat_statements(pages: AsgiApp, path: str) -> None:
    async with pages.as_role("admin") as admin:
        assert max((await cost(admin, path)).values(), default=0) <= 2
