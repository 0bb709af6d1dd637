"""Pages show numbers, and find by number what the user may see."""

from __future__ import annotations

from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import AsgiApp
from tests.support.published_problem import publish_problem


async def test_pages_of_submissions_and_batches_show_and_find_numbers(pages: AsgiApp) -> None:
    published_problem = await publish_problem(pages)
    async with (
        published_problem.user_client() as author,
        published_problem.user_client() as other,
        published_problem.user_client("judge") as judge,
    ):
        made = await published_problem.submit(author)
        path, number = f"/submissions/{made['submission_id']}", made["number"]
        assert f"<h1>Submission #{number}</h1>" in (await author.get(path)).text
        assert f'<a href="{path}">#{number}</a>' in (await author.get("/submissions")).text
        assert f"<h1>提交 #{number}</h1>" in (await author.get(path, headers={"Accept-Language": "zh"})).text
        for address in (f"/submissions/{number}", f"/submissions?number={number}", f"/submissions?number=%23{number}"):
            found = await author.get(address)
            assert (found.status_code, found.headers.get("Location")) == (303, path)
        for address in ("/submissions/{}", "/submissions?number={}"):
            hidden = await other.get(address.format(number))
            missing = await other.get(address.format(number + 7))
            assert (hidden.status_code, missing.status_code) == (404, 404)
            assert made["submission_id"] not in hidden.text
        refused = await author.get("/submissions", params={"number": "twelve"})
        assert (refused.status_code, "number:" in refused.text) == (400, True)
        await published_problem.finish(made["job_id"], Verdict.WA, score=0)
        form = {"problem": "sum", "reason": "a wrong answer file", "policy": "latest", "revision": "current"}
        batch = (await judge.post("/rejudge", data=form)).headers["Location"]
        job_id = (await pages.store.row("SELECT id FROM jobs WHERE rejudge_batch_id IS NOT NULL"))["id"]
        await published_problem.finish(job_id, Verdict.AC)
        called = (await pages.store.row("SELECT number FROM rejudge_batches"))["number"]
        assert f"<h1>Rejudge batch #{called}</h1>" in (await judge.get(batch)).text
        assert f'<a href="{path}">#{number}</a>' in (await judge.get(batch)).text
        assert f'<a href="{batch}">#{called}</a>' in (await judge.get("/rejudge")).text
        assert (await judge.get(f"/rejudge/{called}")).headers["Location"] == batch
        assert (await judge.get(f"/rejudge/{called + 1}")).status_code == 404
        assert f"Rejudge batch #{called}" in (await judge.get(path)).text


async def test_pages_of_runs_show_and_find_numbers(pages: AsgiApp) -> None:
    async with pages.as_role("admin") as admin, pages.as_role("setter") as setter:
        body = {"name": "nightly", "dag": {"nodes": [{"id": "a", "type": "noop"}]}}
        assert (await admin.post("/api/v1/chains", json=body)).status_code == 201
        first, second = [(await admin.post("/chains/nightly/start")).headers["Location"] for _ in range(2)]
        for page in (second, f"{second}/nodes/a"):
            assert "nightly, run 2" in (await admin.get(page)).text
        listed = (await admin.get("/chains/nightly")).text
        assert f'<a href="{first}">#1</a>' in listed
        assert f'<a href="{second}">#2</a>' in listed
        assert (await admin.get("/chains/nightly/runs/2")).headers["Location"] == second
        hidden = await setter.get("/chains/nightly/runs/2")
        assert (hidden.status_code, second.rpartition("/")[2] in hidden.text) == (404, False)
        for missing in ("3", "two"):
            assert (await admin.get(f"/chains/nightly/runs/{missing}")).status_code == 404
        again = (await admin.post(f"{first}/rerun", data={"reason": "again"})).headers["Location"]
        assert f'<a href="{first}">nightly, run 1</a>' in (await admin.get(again)).text
