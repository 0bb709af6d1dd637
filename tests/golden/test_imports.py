"""Import with verification: jury solutions run in the sandbox and their results are stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adjudge.judge.pipeline import Judge
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.problem_packages import icpc_package, import_package, run_pending_imports, zip_files
from tests.support.store_harness import StoreHarness

ROOT = "/api/v1"


@pytest.fixture
async def api(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    async with make_app(sqlite_store, tmp_path) as api:
        yield api


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_publish_requires_successful_verification(api: AsgiApp, judge: Judge, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    right = zip_files(
        icpc_package("Sum", **{"submissions/wrong_answer/difference.py": "a,b=map(int,input().split());print(a-b)\n"})
    )
    found = await import_package(api, tmp_path, setter, right, judge, slug="sum", verify=True, publish=True)
    assert (found["state"], found["jury"]["ok"]) == ("succeeded", True)
    rows = {row["path"]: (row["expected"], row["verdict"], row["ok"]) for row in found["jury"]["submissions"]}
    assert rows == {"accepted/sum.py": ("AC", "AC", True), "wrong_answer/difference.py": ("WA/OLE", "WA", True)}
    wrong = zip_files(icpc_package("Sum", **{"data/secret/1.ans": "12\n"}))
    again = await import_package(api, tmp_path, setter, wrong, judge, slug="sum", verify=True, publish=True)
    assert (again["state"], again["revision"], again["jury"]["ok"]) == ("succeeded", 2, False)
    assert any("Not published" in item["message"] for item in again["findings"])
    async with api.client(setter) as client:
        assert (await client.get(f"{ROOT}/problems/sum")).json()["revision"] == 1
        started = await client.post(f"{ROOT}/problems/sum/revisions/1:verify")
        await run_pending_imports(api, tmp_path, judge)
        verified = (await client.get(started.json()["url"])).json()
        assert (verified["purpose"], verified["state"], verified["jury"]["ok"]) == ("verify", "succeeded", True)
        kept = (await client.get(f"{ROOT}/problems/sum/revisions/1")).json()["jury"]
        assert kept == verified["jury"]
