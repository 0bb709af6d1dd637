"""Pages of chains, as the server renders them."""

from __future__ import annotations

import html
import json
import re

import pytest

from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains.models import JOB_KIND_NODE, Artifact, NodeDone, NodeSuspended
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import JobResult
from tests.support.asgi_app import AsgiApp
from tests.support.store_harness import fence_of

HOSTILE = "<script>alert(1)</script>"
DAG = {
    "nodes": [
        {"id": "check", "type": "noop"},
        {"id": "ask", "type": "wait_approval", "deps": ["check"], "cfg": {"question": f"Go on {HOSTILE}?"}},
    ]
}


async def _finish_next(pages: AsgiApp, outcome: object = None) -> str:
    jobs = JobCommands({JOB_KIND_NODE: pages.services.chain_runs.engine.job_listener})
    row = await pages.store.row("SELECT id FROM jobs WHERE status = 'pending'")
    job = (await pages.store.transact(lambda tx: jobs.claim(tx, [row["id"]], worker="w1", lease_ms=60_000))).done[0]
    await pages.store.transact(
        lambda tx: jobs.finish_and_claim_next(tx, [JobResult(fence_of(job), typed_result=outcome)])
    )
    return job.node_id or ""


@pytest.fixture
async def chain(pages: AsgiApp) -> None:
    async with pages.as_role("admin") as admin:
        body = {"name": "release", "description": HOSTILE, "dag": DAG}
        assert (await admin.post("/api/v1/chains", json=body)).status_code == 201


@pytest.mark.usefixtures("chain")
async def test_run_is_started_shown_and_approved(pages: AsgiApp) -> None:
    async with pages.as_role("setter") as setter:
        listed = await setter.get("/chains")
        assert "/chains/release" in listed.text
        assert HOSTILE not in listed.text
        assert '<svg class="dag"' in (await setter.get("/chains/release")).text
        refused = await setter.post("/chains/release/start", data={"parameters": "[1]"})
        assert (refused.status_code, "JSON object" in refused.text) == (400, True)
        started = await setter.post("/chains/release/start", data={"parameters": '{"x": 1}'})
        path = started.headers["Location"]
        assert await _finish_next(pages) == "check"
        run_id = path.rpartition("/")[2]
        question = Artifact(f'{{"question": "Go on {HOSTILE}?"}}')
        assert await _finish_next(pages, NodeSuspended("approval", f"{run_id}/ask/1", question)) == "ask"
        state = (await setter.get(f"{path}/state")).text
        assert "data-live-done" not in state
        assert "ask requires approval: Go on &lt;script&gt;" in state, "the run's page says who is waited for"
        assert "waiting for approval" in state
        node = await setter.get(f"{path}/nodes/ask")
        assert "Go on &lt;script&gt;" in node.text
        unsaid = await setter.post(f"{path}/nodes/ask/decide", data={"decision": "approve", "reason": " "})
        assert unsaid.status_code == 400
        neither = await setter.post(f"{path}/nodes/ask/decide", data={"decision": "perhaps", "reason": "good"})
        assert (neither.status_code, "expected approve or reject" in neither.text) == (400, True)
        said = await setter.post(f"{path}/nodes/ask/decide", data={"decision": "approve", "reason": "good"})
        assert said.status_code == 303
        assert "data-live-done" in (await setter.get(f"{path}/state")).text


@pytest.mark.usefixtures("chain")
async def test_pages_show_the_name_of_the_user_who_started_a_run(pages: AsgiApp) -> None:
    async with pages.as_role("setter") as setter:
        me = (await setter.get("/api/v1/me")).json()
        path = (await setter.post("/chains/release/start")).headers["Location"]
        assert f"<dd>{me['name']}</dd>" in (await setter.get(path)).text
        for page in ("/chains", "/chains/release"):
            assert f"<td>{me['name']}</td>" in (await setter.get(page)).text


@pytest.mark.usefixtures("chain")
async def test_artifact_files_are_linked_by_name(pages: AsgiApp) -> None:
    async with pages.as_role("setter") as setter:
        path = (await setter.post("/chains/release/start")).headers["Location"]
        digest = await pages.services.run_files.blobs.put(b"what it printed")
        left = Artifact(json.dumps({"collected": {f"{HOSTILE}.txt": {"digest": digest, "size_bytes": 15}}}))
        assert await _finish_next(pages, NodeDone(left)) == "check"
        page = (await setter.get(f"{path}/nodes/check")).text
        assert HOSTILE not in page
        (link,) = re.findall(rf'href="([^"]*/files/{digest}[^"]*)"', page)
        fetched = await setter.get(html.unescape(link))
        assert (fetched.content, "attachment" in fetched.headers["content-disposition"]) == (b"what it printed", True)


async def test_large_dag_is_not_drawn_and_optional_fields_may_be_null(pages: AsgiApp) -> None:
    plain = {"nodes": [{"id": "a", "type": "noop", "deps": None}]}
    dense = {"nodes": [{"id": f"n{i}", "type": "noop", "deps": [f"n{j}" for j in range(i)]} for i in range(120)]}
    async with pages.as_role("admin") as admin:
        for name, dag in (("plain", plain), ("dense", dense)):
            assert (await admin.post("/api/v1/chains", json={"name": name, "dag": dag})).status_code == 201
            run = (await admin.post(f"/chains/{name}/start")).headers["Location"]
            drawn = ['<svg class="dag"' in (await admin.get(path)).text for path in (f"/chains/{name}", run)]
            assert drawn == [name == "plain"] * 2


async def test_run_and_node_show_that_they_wait_for_a_slot(pages: AsgiApp) -> None:
    nodes = [{"id": name, "type": "noop"} for name in ("one", "other")]
    over_runs = {"max_runs": 1, "when_full": "wait"}
    async with pages.as_role("admin") as admin:
        body = {"name": "narrow", "dag": {"nodes": nodes, "max_parallel": 1, "over_runs": over_runs}}
        assert (await admin.post("/api/v1/chains", json=body)).status_code == 201
        first, second = [(await admin.post("/chains/narrow/start")).headers["Location"] for _ in range(2)]
        waits = '<span class="badge warn">queued (concurrency limit)</span>'
        state = (await admin.get(f"{first}/state")).text
        assert state.count(waits) == 1, "one node runs, the other waits"
        assert state.index('/nodes/other">other') < state.index(waits)
        assert "queued (concurrency limit)" in state[: state.index("</svg>")], "the drawing says so too"
        assert waits in (await admin.get(f"{first}/nodes/other")).text
        assert waits not in (await admin.get(f"{first}/nodes/one")).text
        assert (await admin.get(f"{second}/state")).text.count(waits) == 1, "the run itself waits for its turn"
        assert await _finish_next(pages) == "one"
        assert waits not in (await admin.get(f"{first}/state")).text
        assert waits not in (await admin.get(f"{first}/nodes/other")).text
        assert await _finish_next(pages) == "other"
        turn = (await admin.get(f"{second}/state")).text
        assert turn.count(waits) == 1, "it has begun, and its second node waits in turn"
        assert turn.index("/nodes/other") < turn.index(waits)


@pytest.mark.usefixtures("chain")
async def test_run_is_stopped_and_rerun_with_a_reason(pages: AsgiApp) -> None:
    async with pages.as_role("setter") as setter, pages.as_role("judge") as judge:
        path = (await setter.post("/chains/release/start")).headers["Location"]
        assert (await judge.post(f"{path}/stop", data={"reason": "x"})).status_code == 403
        assert "formaction" not in (await judge.get(path)).text
        assert (await setter.post(f"{path}/stop", data={"reason": "enough"})).status_code == 303
        assert "enough" in (await setter.get(path)).text
        again = await setter.post(f"{path}/nodes/check/retry", data={"reason": "once more"})
        assert again.status_code == 303
        other = await setter.post(f"{path}/rerun", data={"reason": "fresh"})
        assert other.headers["Location"] != path


@pytest.mark.usefixtures("chain")
async def test_long_log_shows_its_last_lines(pages: AsgiApp) -> None:
    async with pages.as_role("setter") as setter:
        path = (await setter.post("/chains/release/start")).headers["Location"]
        run_id = path.rpartition("/")[2]
        lines = [f"line {number};" for number in range(1, 503)]
        await pages.store.transact(lambda tx: chain_commands.append_log(tx, run_id, "check", attempt=1, lines=lines))
        shown = (await setter.get(f"{path}/nodes/check/state")).text
    assert "line 502;" in shown
    assert "line 2;" not in shown
    assert "Last 500 lines." in shown
    assert shown.index("line 3;") < shown.index("line 4;")
