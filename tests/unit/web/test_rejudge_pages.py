"""Rejudge pages: verdicts change only when a batch is applied."""

from __future__ import annotations

from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import AsgiApp
from tests.support.published_problem import publish_problem


async def test_batch_is_created_previewed_and_applied(pages: AsgiApp) -> None:
    published_problem = await publish_problem(pages)
    async with (
        published_problem.user_client() as author,
        published_problem.user_client("judge") as judge,
        published_problem.user_client("setter") as setter,
    ):
        created = await published_problem.submit(author)
        await published_problem.finish(created["job_id"], Verdict.WA, score=0)
        without_reason = await judge.post("/rejudge", data={"problem": "sum"})
        assert (without_reason.status_code, "reason" in without_reason.text) == (400, True)
        form = {"problem": "sum", "reason": "a wrong answer file", "policy": "latest", "revision": "current"}
        path = (await judge.post("/rejudge", data=form)).headers["Location"]
        assert "data-live-done" not in (await judge.get(path)).text
        job_id = (await pages.store.row("SELECT id FROM jobs WHERE rejudge_batch_id IS NOT NULL"))["id"]
        await published_problem.finish(job_id, Verdict.AC)
        state = (await judge.get(f"{path}/state")).text
        assert "data-live-done" in state
        assert "Wrong answer" in state
        assert (await author.get(f"/api/v1/submissions/{created['submission_id']}")).json()["verdict"] == "WA"
        assert "formaction" not in (await setter.get(path)).text
        assert (await setter.post(f"{path}/apply")).status_code == 403
        assert (await judge.post(f"{path}/apply")).status_code == 303
        assert "applied" in (await judge.get("/rejudge")).text
        submission = (await author.get(f"/api/v1/submissions/{created['submission_id']}")).json()
        assert submission["verdict"] == "AC"


async def test_page_of_a_submission_links_the_result_of_each_run(pages: AsgiApp) -> None:
    published_problem = await publish_problem(pages)
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        created = await published_problem.submit(author)
        await published_problem.finish(created["job_id"], Verdict.WA, score=0)
        form = {"problem": "sum", "reason": "a wrong answer file", "policy": "latest", "revision": "current"}
        await judge.post("/rejudge", data=form)
        job_id = (await pages.store.row("SELECT id FROM jobs WHERE rejudge_batch_id IS NOT NULL"))["id"]
        await published_problem.finish(job_id, Verdict.AC, mem_kb=5_003)
        path = f"/submissions/{created['submission_id']}"
        page = (await judge.get(path)).text
        assert all(f"{path}?run={run}" in page for run in (created["job_id"], job_id))
        other = (await judge.get(path, params={"run": job_id})).text
        assert "does not decide" in other
        assert "Accepted ·" in other
        assert "data-live=" not in other
        deciding = (await judge.get(path, params={"run": created["job_id"]})).text
        assert "does not decide" not in deciding
        for client, run in ((author, job_id), (judge, "none")):
            assert (await client.get(path, params={"run": run})).status_code == 404
