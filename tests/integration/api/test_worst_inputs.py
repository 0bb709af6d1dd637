"""The largest input that a page or a route takes does not keep the server from answering others.

The server's event loop beats while a request is under way. What counts is the processor time that the loop's own thread
spends between two beats: a machine that is busy with something else does not change it, and work that was moved to
another thread is not in it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from adjudge.domain.verdict import Verdict
from adjudge.store.judging.models import Judgement
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.problem_packages import icpc_package, import_package, zip_files
from tests.support.published_problem import OPEN_GATE, publish_problem, result_document
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness

pytestmark = pytest.mark.slow
LONGEST_SEC: Final = 2.0
"""Of processor time, at a stretch. The defects that led here took from 6 to 62 seconds; what is allowed takes far less
than one."""


class Beats:
    """The longest time that the loop's thread has worked without letting others in."""

    def __init__(self) -> None:
        self.longest_sec = 0.0
        self.count = 0

    async def beat(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_sec = max(self.longest_sec, now - last)
            self.count += 1
            last = now


@asynccontextmanager
async def beating() -> AsyncIterator[Beats]:
    beats = Beats()
    task = asyncio.create_task(beats.beat())
    try:
        yield beats
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def answered(api: AsgiApp, ask: Callable[[], Any]) -> httpx.Response:
    """The answer; meanwhile the loop has beaten, and somebody else was answered."""
    async with beating() as beats, api.client() as other:
        heavy = asyncio.create_task(ask())
        assert (await other.get("/api/v1/health/live")).status_code == 200
        answer: httpx.Response = await heavy
    assert beats.longest_sec < LONGEST_SEC, f"the loop stood still for {beats.longest_sec:.1f} s"
    return answer


@pytest.fixture
async def api(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    overrides = {**OPEN_GATE, "admission.in_flight": 0, "accounts.registration": "open"}
    async with make_app(sqlite_store, tmp_path, overrides) as api:
        add_pages(api.app, api.services)
        yield api


def node(number: int, depends_on: list[str]) -> dict[str, Any]:
    return {"id": f"n{number}", "type": "noop", "deps": depends_on}


def dense_dag(nodes: int, before: int) -> dict[str, Any]:
    """Every node depends on those right before it."""
    return {"nodes": [node(i, [f"n{j}" for j in range(max(0, i - before), i)]) for i in range(nodes)]}


DAGS: dict[str, dict[str, Any]] = {
    "many edges": dense_dag(1_500, 400),
    "all wrong": {"nodes": [{"id": "!", "type": "none", "deps": ["x"], "k": i} for i in range(20_000)]},
    "one circle": {"nodes": [node(i, [f"n{(i + 1) % 20_000}"]) for i in range(20_000)]},
    "unknown settings": {"nodes": [node(0, []) | {"cfg": {f"k{i}": 1 for i in range(200_000)}}]},
}


def encoded(body: object) -> dict[str, Any]:
    """What a client sends, made before the clock runs: client and server share a thread here."""
    return {"content": json.dumps(body).encode(), "headers": {"Content-Type": "application/json"}}


@pytest.mark.parametrize("name", DAGS)
async def test_chain_of_the_largest_size(api: AsgiApp, name: str) -> None:
    async with api.as_role("admin") as admin:
        sent = encoded({"name": "big", "dag": DAGS[name]})
        made = await answered(api, lambda: admin.post("/api/v1/chains", **sent))
        assert made.status_code == (201 if name == "many edges" else 400)
        if made.status_code == 201:
            begun = await answered(api, lambda: admin.post("/api/v1/chains/big:start", json={}))
            run = f"/runs/{begun.json()['run_id']}"
            await walk(api, admin, ["/chains/big", "/api/v1/chains/big", run, f"{run}/state", f"/api/v1{run}/nodes"])


async def walk(api: AsgiApp, client: httpx.AsyncClient, paths: Sequence[str]) -> None:
    for path in paths:
        assert (await answered(api, partial(client.get, path))).status_code == 200, path


def lines(count: int, what: str = "") -> str:
    return f"{what}\n" * count


BEFORE, AFTER = (
    {
        "attachments/equal.txt": "a\n" + lines(32_000) + lines(300, "old"),
        "attachments/other.txt": "".join(f"{i}\n" for i in range(11_000)),
        **{f"attachments/{i}.txt": lines(20_000, "x") for i in range(20)},
    },
    {
        "attachments/equal.txt": "b\n" + lines(32_000) + lines(300, "new"),
        "attachments/other.txt": "".join(f"{i}\n" for i in range(11_000, 0, -1)),
        **{f"attachments/{i}.txt": "y\n" + lines(20_000, "x")[2:] + "z\n" * 100 for i in range(20)},
    },
)


async def test_revisions_whose_files_differ_in_every_line(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    for files in (BEFORE, AFTER):
        await import_package(api, tmp_path, setter, zip_files(icpc_package("Sum", **files)), slug="sum", publish=True)
    async with api.client(setter) as client:
        paths = ["/manage/problems/sum/diff?old=1&new=2", "/api/v1/problems/sum/diff?old=1&new=2"]
        await walk(api, client, [*paths, "/manage/problems/sum/revisions/2"])


STATEMENTS: dict[str, tuple[str, str]] = {
    "brackets": ("md", "[" * 120_000),
    "formulas": ("md", "$x^2_i$ " * 16_000),
    "one formula": ("md", "$" + "{x_" * 1_300 + "$\n\n" + "$" + "\\frac{" * 600 + "$"),
    "elements": ("html", "<div>" * 26_000),
    "TeX": ("tex", "\\begin{itemize}\\item $x$ " * 5_000),
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_statement_of_the_largest_size(api: AsgiApp, tmp_path: Path, name: str) -> None:
    kind, text = STATEMENTS[name]
    files = {name: data for name, data in icpc_package("Sum").items() if not name.startswith("statement/")}
    files[f"statement/problem.en.{kind}"] = text.encode()
    _, setter = await api.user("setter")
    await import_package(api, tmp_path, setter, zip_files(files), slug="sum", publish=True)
    async with api.client(setter) as client:
        await walk(api, client, ["/api/v1/problems/sum", "/problems/sum", "/api/v1/problems?q=" + "a+" * 100])


async def test_submission_with_the_longest_texts(api: AsgiApp) -> None:
    published_problem = await publish_problem(api)
    async with published_problem.user_client() as author:
        made = await published_problem.submit(author)
        started = await published_problem.claim(made["job_id"])
        found = dict(result_document(Verdict.WA))
        sample, secret = found["cases"]
        found["compile"] = {**found["compile"], "ok": False, "log": "main.cpp:3:5: error " * 3_200}
        written = {"expected": "a\n" * 2_048, "got": "".join(f"{i % 7}\n" for i in range(2_048))}
        found["cases"] = [*({**sample, "name": str(i), "written": written} for i in range(20)), *[secret] * 1_000]
        finish = started._replace(result=found, typed_result=Judgement(Verdict.WA, cases=()))
        await api.store.transact(lambda tx: api.store.jobs.finish_and_claim_next(tx, [finish]))
        place = f"/submissions/{made['submission_id']}"
        results = [f"/api/v1{place}/results", f"/api/v1/judge-runs/{made['job_id']}/results"]
        await walk(api, author, [place, f"{place}/state", *results])


async def test_bodies_of_the_largest_size(api: AsgiApp) -> None:
    published_problem = await publish_problem(api)
    sources = ["x" * 60_000, "\n" * 60_000, "\u00e9" * 30_000]
    bodies: dict[str, object] = {
        "/api/v1/submissions": published_problem.submission_body(source="y" * 90_000),
        "/api/v1/submissions:batch": {
            "items": [published_problem.submission_body(source=sources[i % 3]) for i in range(100)]
        },
        "/api/v1/executions": {"language": "cpp", "source": "x" * 90_000, "stdins": ["1"] * 50},
        "/api/v1/rejudge-batches": {"filter": {"ids": [f"{i:036}" for i in range(10_000)]}, "reason": "x"},
        "/api/v1/webhooks": {"url": "https://h.example/" + "a" * 10_000, "events": ["x"] * 10_000},
        "/api/v1/me/tokens": {"name": "x", "scopes": ["problem:read"] * 15_000},
    }
    async with published_problem.user_client("admin") as admin:
        for path, body in bodies.items():
            sent = encoded(body)
            answer = await answered(api, partial(admin.post, path, **sent))
            assert answer.status_code < 500, (path, answer.text[:500])


async def test_forms_and_passwords_of_the_largest_size(api: AsgiApp) -> None:
    async with api.client() as visitor:
        for path, fields in {
            "/login": {"name": "a" * 4_000, "password": "p" * 60_000, "next": "/" + "a" * 4_000},
            "/register": dict.fromkeys(("name", "password", "email", "display_name"), "a" * 4_000),
        }.items():
            answer = await answered(api, partial(visitor.post, path, data=fields))
            assert answer.status_code < 500
        many = "&".join(f"k{i}=1" for i in range(7_000)).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await answered(api, lambda: visitor.post("/login", content=many, headers=form))
        assert (answer.status_code, "Too many fields" in answer.text) == (400, True)
