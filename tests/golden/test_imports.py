"""An import that verifies: the jury's solutions run in the sandbox, and their table is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adjudge.judge.pipeline import Judge
from tests.support.api import Api, make_api
from tests.support.problems import archive, imported, package, work
from tests.support.stores import Store

ROOT = "/api/v1"


@pytest.fixture
async def api(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[Api]:
    async with make_api(sqlite_store, tmp_path) as api:
        yield api


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_the_jurys_table_decides_whether_it_is_published(api: Api, judge: Judge, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    right = archive(
        package("Sum", **{"submissions/wrong_answer/difference.py": "a,b=map(int,input().split());print(a-b)\n"})
    )
    found = await imported(api, tmp_path, setter, right, judge, slug="sum", verify=True, publish=True)
    assert (found["state"], found["jury"]["ok"]) == ("succeeded", True)
    rows = {row["path"]: (row["expected"], row["verdict"], row["ok"]) for row in found["jury"]["submissions"]}
    assert rows == {"accepted/sum.py": ("AC", "AC", True), "wrong_answer/difference.py": ("WA/OLE", "WA", True)}
    wrong = archive(package("Sum", **{"data/secret/1.ans": "12\n"}))
    again = await imported(api, tmp_path, setter, wrong, judge, slug="sum", verify=True, publish=True)
    assert (again["state"], again["revision"], again["jury"]["ok"]) == ("succeeded", 2, False)
    assert any("was not published" in item["message"] for item in again["findings"])
    async with api.client(setter) as client:
        assert (await client.get(f"{ROOT}/problems/sum")).json()["revision"] == 1
        started = await client.post(f"{ROOT}/problems/sum/revisions/1:verify")
        await work(api, tmp_path, judge)
        verified = (await client.get(started.json()["url"])).json()
        assert (verified["purpose"], verified["state"], verified["jury"]["ok"]) == ("verify", "succeeded", True)
        kept = (await client.get(f"{ROOT}/problems/sum/revisions/1")).json()["jury"]
        assert kept == verified["jury"]
