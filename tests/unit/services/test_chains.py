"""Chains over HTTP: JobChain's acceptance cases (§J) by number, triggers, decisions, watching."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.chains.approval import answer_approval
from adjudge.domain.errors import WrongNodeState
from adjudge.domain.states import JobStatus
from adjudge.domain.strict_json import MAX_DEPTH
from adjudge.store import Tx
from adjudge.store.chains.models import JOB_KIND_NODE, Artifact, NewChainRun, NodeDone, NodeExpanded, NodeSuspended
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import JobResult
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.store_harness import StoreHarness, fence_of

ROOT = "/api/v1"


def line(*names: str, **fields: Any) -> dict[str, Any]:
    """A DAG in which each node waits for the one before."""
    pairs = zip(names, [None, *names], strict=False)
    return {"nodes": [{"id": name, "type": "noop", "deps": [dep] if dep else [], **fields} for name, dep in pairs]}


@dataclass
class ChainApi:
    """An admin at the API, and a hand that does what workers would."""

    api: AsgiApp
    client: httpx.AsyncClient

    async def define(self, dag: dict[str, Any], name: str = "nightly") -> dict[str, Any]:
        answer = await self.client.post(f"{ROOT}/chains", json={"name": name, "dag": dag})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def start(self, chain: str = "nightly", **options: Any) -> str:
        answer = await self.client.post(f"{ROOT}/chains/{chain}:start", **options)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    async def work(self, *, outcome: object = None, status: JobStatus = JobStatus.SUCCEEDED) -> list[str]:
        """Claim and end every node that waits; return which."""
        jobs = JobCommands({JOB_KIND_NODE: self.api.services.chain_runs.engine.job_listener})
        rows = await self.api.store.rows("SELECT id FROM jobs WHERE kind = 'node' AND status = 'pending' ORDER BY id")
        names = []
        for row in rows:
            job = (
                await self.api.store.transact(
                    lambda tx, row=row: jobs.claim(tx, [row["id"]], worker="w1", lease_ms=60_000)  # type: ignore[misc]  # a default binds it
                )
            ).done[0]
            finish = JobResult(
                fence_of(job), status, typed_result=outcome or NodeDone(Artifact(json.dumps({"n": job.node_id})))
            )
            await self.api.store.transact(lambda tx, finish=finish: jobs.finish_and_claim_next(tx, [finish]))  # type: ignore[misc]  # a default binds it
            names.append(job.node_id or "")
        return names

    async def get(self, path: str, status: int = 200) -> Any:
        answer = await self.client.get(f"{ROOT}{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path: str, status: int, body: Any = None) -> Any:
        answer = await self.client.post(f"{ROOT}{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def states(self, run_id: str) -> dict[str, str]:
        return {node["node_id"]: node["status"] for node in (await self.get(f"/runs/{run_id}/nodes"))["items"]}


@pytest.fixture
async def chain_api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ChainApi]:
    async with make_app(store, tmp_path) as api, api.as_role("admin") as client:
        yield ChainApi(api, client)


async def test_j01_to_j05_definitions_and_their_versions(chain_api: ChainApi) -> None:
    made = await chain_api.define(line("a", "b"))
    assert (made["version"], made["enabled"]) == (1, True)
    taken = await chain_api.post("/chains", 400, {"name": "nightly", "dag": line("a")})
    assert (taken["code"], "nightly" in taken["detail"]) == ("CHAIN_NAME_TAKEN", True)
    empty = await chain_api.post("/chains", 400, {"name": "empty", "dag": {}})
    assert "dag must have nodes" in empty["detail"]
    body = {"name": "nightly", "dag": line("a", "b", "c"), "version": 1}
    changed = await chain_api.client.put(f"{ROOT}/chains/{made['id']}", json=body)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    stale = await chain_api.client.put(f"{ROOT}/chains/{made['id']}", json=body)
    assert (stale.status_code, stale.json()["code"]) == (409, "VERSION_CONFLICT")
    versions = (await chain_api.get("/chains/nightly/versions"))["items"]
    assert [(item["version"], len(item["dag"]["nodes"])) for item in versions] == [(2, 3), (1, 2)]


@pytest.mark.parametrize("name", ["a/b", "a\nb", "  ", "a\x7f", "x" * 129, ".", ".."])
async def test_names_that_would_lead_nowhere_are_refused(chain_api: ChainApi, name: str) -> None:
    refused = await chain_api.post("/chains", 400, {"name": name, "dag": line("a")})
    assert refused["errors"][0]["field"] == "body.name"
    assert "pattern" not in refused["detail"], "it is said in words"
    made = await chain_api.define(line("a"), " \u6bcf\u665a: 1 ")
    assert (await chain_api.get("/chains/\u6bcf\u665a: 1"))["id"] == made["id"], "letters are anybody's"
    assert (await chain_api.post(f"/chains/{made['id']}/triggers", 400, {"name": name, "kind": "webhook", "spec": {}}))[
        "code"
    ]


async def test_everything_that_is_wrong_is_said_at_once(chain_api: ChainApi) -> None:
    nodes = [
        {"id": "a", "type": "noop", "deps": ["c"]},
        {"id": "b", "type": "no-such-type", "deps": ["a"]},
        {"id": "c", "type": "noop", "deps": ["b"]},
        {"id": "d", "type": "sleep", "cfg": {"ms": "long"}, "deps": ["ghost"]},
    ]
    said = (await chain_api.post("/chains", 400, {"name": "wrong", "dag": {"nodes": nodes}}))["detail"]
    for part in ("no-such-type", "ghost", "cycle"):
        assert part in said


async def test_a_chain_and_its_triggers_are_applied_together_or_not_at_all(chain_api: ChainApi) -> None:
    hook = {"name": "hook", "kind": "webhook", "spec": {}}
    wanted = {"name": "night", "dag": line("a")}
    wrong = {"name": "t", "kind": "cron", "spec": {"cron": "at three"}}
    refused = await chain_api.post("/chains:apply", 400, {**wanted, "triggers": [hook, wrong]})
    assert refused["detail"].startswith("spec.cron: 'at three'")
    await chain_api.get("/chains/night", 404)
    right = {**wrong, "spec": {"cron": "0 3 * * *"}}
    done = await chain_api.post("/chains:apply", 200, {**wanted, "triggers": [hook, right]})
    assert (done["outcome"], done["triggers"]) == ("created", {"hook": "created", "t": "created"})
    assert list(done["secrets"]) == ["hook"]
    again = await chain_api.post("/chains:apply", 200, {**wanted, "triggers": [hook]})
    assert (again["outcome"], again["triggers"]) == ("unchanged", {"hook": "unchanged", "t": "removed"})
    twice = await chain_api.post("/chains:apply", 400, {**wanted, "triggers": [hook, hook]})
    assert "'hook' is used twice" in twice["detail"]


async def test_j06_a_disabled_chain_does_not_start(chain_api: ChainApi) -> None:
    await chain_api.define(line("a"))
    for _ in range(2):
        assert (await chain_api.post("/chains/nightly:disable", 200))["enabled"] is False
    refused = await chain_api.post("/chains/nightly:start", 409)
    assert "chain is disabled" in refused["detail"]
    await chain_api.post("/chains/nightly:enable", 200)
    run_id = await chain_api.start(headers={"Idempotency-Key": "k"})
    await chain_api.work()
    await chain_api.post("/chains/nightly:disable", 200)
    assert await chain_api.start(headers={"Idempotency-Key": "k"}) == run_id, "it was started before"
    refused = await chain_api.post(f"/runs/{run_id}:rerun", 409)
    assert "chain is disabled" in refused["detail"]
    assert (await chain_api.post("/chains/nightly:enable", 200))["enabled"] is True


async def test_j07_and_j08_pages_and_details(chain_api: ChainApi) -> None:
    for name in ("alpha", "beta", "gamma"):
        await chain_api.define(line("a"), name)
    await chain_api.post("/chains/beta:disable", 200)
    found = await chain_api.get("/chains?keyword=a&enabled=true&page=1&size=1")
    assert ([item["name"] for item in found["items"]], found["total"]) == (["alpha"], 2)
    assert (await chain_api.get("/chains/gamma"))["dag"]["nodes"][0]["id"] == "a"
    assert (await chain_api.get("/chains/none", 404))["code"] == "CHAIN_NOT_FOUND"


async def test_j09_to_j11_a_run_starts_once_per_key_and_reaches_its_end(chain_api: ChainApi) -> None:
    await chain_api.define(line("a", "b"))
    key = {"Idempotency-Key": "tonight"}
    run_id = await chain_api.start(json={"parameters": {"x": 1}}, headers=key)
    assert await chain_api.start(json={"parameters": {"x": 1}}, headers=key) == run_id
    assert await chain_api.states(run_id) == {"a": "pending", "b": "pending"}
    assert await chain_api.work() == ["a"]
    assert (await chain_api.get(f"/runs/{run_id}"))["status"] == "running"
    assert await chain_api.work() == ["b"]
    run = await chain_api.get(f"/runs/{run_id}")
    assert (run["status"], run["parameters"], run["nodes_open"]) == ("success", {"x": 1}, 0)
    assert await chain_api.get(f"/runs/{run_id}/nodes/a/artifact") == {"n": "a"}
    log = (await chain_api.get(f"/runs/{run_id}/log"))["items"]
    assert [item["to_status"] for item in log if item["node_id"] is None] == ["running", "success"]
    assert [item["id"] for item in (await chain_api.get("/runs?chain=nightly"))["items"]] == [run_id]


async def test_a_key_is_its_owners(chain_api: ChainApi) -> None:
    await chain_api.define(line("a"))
    made = await chain_api.post(
        "/chains/nightly/triggers", 201, {"name": "t", "kind": "cron", "spec": {"cron": "0 3 * * *"}}
    )
    key = {"Idempotency-Key": f"{made['id']}:1"}
    first = await chain_api.start(headers=key)
    async with chain_api.api.as_role("setter") as setter:
        other = (await setter.post(f"{ROOT}/chains/nightly:start", headers=key)).json()
        assert (other["is_new"], (await setter.get(f"{ROOT}/runs/{other['run_id']}")).status_code) == (True, 200)
    tick = NewChainRun(made["chain_id"], idempotency_key=key["Idempotency-Key"], actor="trigger")
    started = await chain_api.api.store.transact(lambda tx: chain_api.api.services.chain_runs.engine.start(tx, tick))
    assert started.is_new, "nobody starts a trigger's run in its place"
    again = await chain_api.client.post(f"{ROOT}/runs/{first}:rerun", headers={"Idempotency-Key": ""})
    assert again.status_code == 400


async def test_j12_a_run_is_stopped(chain_api: ChainApi) -> None:
    await chain_api.define(line("a", "b"))
    run_id = await chain_api.start()
    stopped = await chain_api.post(f"/runs/{run_id}:stop", 200, {"reason": "enough"})
    assert stopped["status"] in ("stopping", "stopped")
    assert (await chain_api.get(f"/runs/{run_id}"))["status"] == "stopped"
    assert set((await chain_api.states(run_id)).values()) == {"stopped"}


async def test_j13_and_j14_retry_and_complete_advance_at_once(chain_api: ChainApi) -> None:
    await chain_api.define(line("a", "b", retry={"max_attempts": 1}))
    run_id = await chain_api.start()
    assert (await chain_api.post(f"/runs/{run_id}/nodes/b:complete", 409))["code"] == "WRONG_NODE_STATE"
    await chain_api.work(status=JobStatus.FAILED)
    assert await chain_api.states(run_id) == {"a": "failed", "b": "skipped"}
    again = await chain_api.post(f"/runs/{run_id}/nodes/a:retry", 200, {"reason": "it was the disk"})
    assert again["status"] == "retrying"
    assert await chain_api.work() == ["a"]
    assert (await chain_api.post(f"/runs/{run_id}/nodes/a:retry", 409))["code"] == "WRONG_NODE_STATE"
    assert await chain_api.work(status=JobStatus.FAILED) == ["b"]
    done = await chain_api.post(f"/runs/{run_id}/nodes/b:complete", 200, {"artifact": {"by": "hand"}, "reason": "done"})
    assert (done["status"], done["artifact"]) == ("success", {"by": "hand"})
    assert (await chain_api.get(f"/runs/{run_id}"))["status"] == "success"
    audited = await chain_api.api.store.rows(
        "SELECT action, reason FROM audit_log WHERE object_kind = 'chain_run' ORDER BY id"
    )
    assert [(row["action"], row["reason"]) for row in audited] == [("retry", "it was the disk"), ("complete", "done")]


async def test_an_artifact_in_a_retry_is_refused(chain_api: ChainApi) -> None:
    await chain_api.define(line("a", retry={"max_attempts": 1}))
    run_id = await chain_api.start()
    await chain_api.work(status=JobStatus.FAILED)
    refused = await chain_api.post(f"/runs/{run_id}/nodes/a:retry", 400, {"artifact": None})
    assert refused["code"] == "INVALID_INPUT"
    assert ":complete" in refused["detail"]
    assert await chain_api.states(run_id) == {"a": "failed"}


async def test_a_run_shows_the_definition_it_began_with(chain_api: ChainApi) -> None:
    made = await chain_api.define(line("a", "b"))
    run_id = await chain_api.start()
    body = {"name": "nightly", "dag": line("other"), "version": made["version"]}
    assert (await chain_api.client.put(f"{ROOT}/chains/nightly", json=body)).status_code == 200
    found = await chain_api.get(f"/runs/{run_id}/dag")
    assert (found["run_id"], [item["id"] for item in found["dag"]["nodes"]]) == (run_id, ["a", "b"])
    missing = await chain_api.get("/runs/00000000-0000-7000-8000-000000000000/dag", 404)
    async with chain_api.api.as_role("setter") as other:
        hidden = await other.get(f"{ROOT}/runs/{run_id}/dag")
    assert (missing["code"], hidden.status_code, hidden.json()["code"]) == ("RUN_NOT_FOUND", 404, "RUN_NOT_FOUND")


async def test_programs_tell_conflicts_apart_by_their_codes(chain_api: ChainApi) -> None:
    await chain_api.define({**line("a"), "over_runs": {"max_runs": 1, "when_full": "refuse"}})
    run_id = await chain_api.start()
    assert (await chain_api.post("/chains/nightly:start", 409))["code"] == "CHAIN_FULL"
    await chain_api.post("/chains/nightly:disable", 200)
    assert (await chain_api.post("/chains/nightly:start", 409))["code"] == "CHAIN_DISABLED"
    await chain_api.work()
    assert (await chain_api.post(f"/runs/{run_id}:stop", 409))["code"] == "WRONG_RUN_STATE"
    trigger = {"name": "hook", "kind": "webhook", "spec": {}}
    await chain_api.post("/chains/nightly/triggers", 201, trigger)
    assert (await chain_api.post("/chains/nightly/triggers", 409, trigger))["code"] == "NAME_TAKEN"


async def test_a_run_is_repeated_from_a_node(chain_api: ChainApi) -> None:
    await chain_api.define(line("a", "b"))
    run_id = await chain_api.start()
    await chain_api.work()
    await chain_api.work()
    again = await chain_api.post(f"/runs/{run_id}:rerun", 202, {"from_node": "b"})
    assert await chain_api.states(again["run_id"]) == {"a": "success", "b": "pending"}
    assert (await chain_api.get(f"/runs/{again['run_id']}"))["origin_run_id"] == run_id


async def test_a_question_is_answered_with_a_reason(chain_api: ChainApi) -> None:
    await chain_api.define({"nodes": [{"id": "ask", "type": "wait_approval", "cfg": {"question": "Publish?"}}]})
    run_id = await chain_api.start()
    asked = Artifact(json.dumps({"question": "Publish?", "on_no": "fail"}))
    await chain_api.work(outcome=NodeSuspended("approval", f"{run_id}/ask/1", asked))
    assert (await chain_api.get(f"/runs/{run_id}/nodes/ask"))["wait_on"] == "approval"
    await chain_api.post(f"/runs/{run_id}/nodes/ask:approve", 400, {"reason": ""})
    answered = await chain_api.post(f"/runs/{run_id}/nodes/ask:approve", 200, {"reason": "it is good"})
    assert answered["artifact"]["approved"] is True
    me = (await chain_api.client.get(f"{ROOT}/me")).json()
    assert (answered["artifact"]["by"], answered["artifact"]["by_id"]) == (me["name"], me["id"])
    entry = (await chain_api.get("/ops/audit"))["items"][0]
    assert (entry["action"], entry["actor"], entry["actor_name"]) == ("run.approve", me["id"], me["name"])
    assert (await chain_api.get(f"/runs/{run_id}"))["status"] == "success"


async def test_only_those_who_were_asked_answer_and_only_once(chain_api: ChainApi) -> None:
    await chain_api.define({"nodes": [{"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?"}}]})
    run_id = await chain_api.start()
    await chain_api.work(
        outcome=NodeSuspended("approval", f"{run_id}/ask/1", Artifact(json.dumps({"approvers": ["eva"]})))
    )
    path, yes = f"/runs/{run_id}/nodes/ask:decide", {"approved": True, "reason": "it is good"}
    refused = await chain_api.post(path, 403, yes)
    assert (refused["code"], refused["detail"]) == ("FORBIDDEN", "Only an approver of this node can decide: eva.")
    _, secret = await chain_api.api.user("setter", "eva")
    async with chain_api.api.client(secret) as setter:
        first, second = [await setter.post(ROOT + path, json=yes) for _ in range(2)]
    assert (first.status_code, second.status_code, second.json()["code"]) == (200, 409, "WRONG_NODE_STATE")


async def test_of_two_who_answer_at_once_one_decides(postgres_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(postgres_store, tmp_path) as api, api.as_role("admin") as client:
        chain_api = ChainApi(api, client)
        await chain_api.define({"nodes": [{"id": "ask", "type": "wait_approval", "cfg": {"question": "Publish?"}}]})
        run_id = await chain_api.start()
        await chain_api.work(
            outcome=NodeSuspended("approval", f"{run_id}/ask/1", Artifact(json.dumps({"on_no": "go_on"})))
        )
        both_have_read = asyncio.Barrier(2)

        async def resume(tx: Tx, **said: Any) -> int:
            await both_have_read.wait()
            return await api.services.chain_runs.engine.resume(tx, **said)

        async def answer(actor: str) -> None:
            about = {"run_id": run_id, "node_id": "ask", "approved": actor == "yes", "actor": actor, "reason": "so"}
            await api.store.transact(lambda tx: answer_approval(tx, resume, **about))  # type: ignore[arg-type]  # by name

        async with asyncio.timeout(120):
            first, second = await asyncio.gather(answer("yes"), answer("no"), return_exceptions=True)
        assert [type(item) for item in (first, second) if item is not None] == [WrongNodeState]
        (entry,) = await api.store.rows("SELECT actor FROM audit_log WHERE object_id = :id", id=run_id)
        assert (await chain_api.get(f"/runs/{run_id}/nodes/ask"))["artifact"]["by"] == entry["actor"]


async def test_a_question_is_not_passed_over_by_completing_it(chain_api: ChainApi) -> None:
    await chain_api.define({"nodes": [{"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?"}}]})
    run_id = await chain_api.start()
    await chain_api.work(
        outcome=NodeSuspended("approval", f"{run_id}/ask/1", Artifact(json.dumps({"approvers": ["eva"]})))
    )
    _, secret = await chain_api.api.user("setter", "eva")
    async with chain_api.api.client(secret) as setter:
        answer = await setter.post(f"{ROOT}/runs/{run_id}/nodes/ask:complete", json={"reason": "in a hurry"})
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
    await chain_api.post(f"/runs/{run_id}/nodes/ask:complete", 200, {"reason": "nobody is there"})


async def test_webhook_with_the_secret_starts_a_chain(chain_api: ChainApi) -> None:
    await chain_api.define(line("a"))
    made = await chain_api.post("/chains/nightly/triggers", 201, {"name": "hook", "kind": "webhook", "spec": {}})
    path = f"{ROOT}/triggers/{made['id']}:call"
    async with chain_api.api.client() as outside:
        wrong = await outside.post(path, headers={"X-Adjudge-Trigger-Secret": "guess"}, json={})
        assert (wrong.status_code, wrong.json()["code"]) == (404, "TRIGGER_NOT_FOUND")
        right = await outside.post(path, headers={"X-Adjudge-Trigger-Secret": made["secret"]}, json={"x": 1})
        assert right.status_code == 202
    listed = (await chain_api.get("/chains/nightly/triggers"))["items"]
    assert made["secret"] not in str(listed)
    changed = await chain_api.client.patch(f"{ROOT}/triggers/{made['id']}", json={"version": 1, "enabled": False})
    assert changed.json()["enabled"] is False
    assert (await chain_api.client.delete(f"{ROOT}/triggers/{made['id']}")).status_code == 204
    assert (await chain_api.get("/chains/nightly/triggers"))["items"] == []


async def test_a_run_is_watched_until_it_ends(chain_api: ChainApi) -> None:
    await chain_api.define(line("a"))
    run_id = await chain_api.start()
    await chain_api.work()
    async with chain_api.client.stream("GET", f"{ROOT}/runs/{run_id}/events") as stream:
        text = "".join([piece async for piece in stream.aiter_text()])
    names = [part.removeprefix("event: ") for part in text.splitlines() if part.startswith("event: ")]
    assert names == ["node", "run", "end"]


@pytest.mark.parametrize("bad", ["\ud800", "\0", float("nan")])
async def test_documents_that_could_never_be_shown_again_are_refused(chain_api: ChainApi, bad: object) -> None:
    chain = await chain_api.define(line("a"))
    hook = await chain_api.post("/chains/nightly/triggers", 201, {"name": "hook", "kind": "webhook", "spec": {}})
    run_id = await chain_api.start()
    await chain_api.work(status=JobStatus.FAILED)
    secret = {"X-Adjudge-Trigger-Secret": hook["secret"]}
    spec = {"cron": "0 3 * * *", "parameters": {"x": bad}}
    named = {"nodes": [{"id": "a", "type": "noop", "cfg": {"artifact": {"x": bad}}}]}
    asked: list[tuple[str, str, Any, dict[str, str], str]] = [
        ("POST", "/chains", {"name": "other", "dag": named}, {}, "dag.nodes[0].cfg.artifact.x: "),
        ("PUT", f"/chains/{chain['id']}", {"name": "n", "dag": named, "version": 1}, {}, "dag.nodes[0].cfg.artifact.x"),
        ("POST", "/chains/nightly:start", {"parameters": {"x": [bad]}}, {}, "parameters.x[0]: "),
        ("POST", "/chains/nightly/triggers", {"name": "t", "kind": "cron", "spec": spec}, {}, "spec.parameters.x: "),
        ("POST", f"/triggers/{hook['id']}:call", {"x": bad}, secret, "body.x: "),
        ("POST", f"/runs/{run_id}/nodes/a:complete", {"artifact": {"x": bad}}, {}, "artifact.x: "),
    ]
    for method, path, body, headers, place in asked:
        content = json.dumps(body)
        answer = await chain_api.client.request(
            method, ROOT + path, content=content, headers={**headers, "Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT"), path
        assert answer.json()["detail"].startswith(place)
    assert [item["id"] for item in (await chain_api.get("/runs"))["items"]] == [run_id], (
        "and everybody still sees their own"
    )


async def test_what_is_kept_can_be_shown_however_deep_it_is(chain_api: ChainApi) -> None:
    await chain_api.define(line("a"))
    deep: Any = []
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    run_id = (await chain_api.post("/chains/nightly:start", 202, {"parameters": {"x": deep[0]}}))["run_id"]
    refused = await chain_api.post("/chains/nightly:start", 400, {"parameters": {"x": deep}})
    assert refused["detail"].startswith("parameters: nested deeper than 100 ")
    await chain_api.work(status=JobStatus.FAILED)
    await chain_api.post(f"/runs/{run_id}/nodes/a:complete", 200, {"artifact": deep})
    assert (await chain_api.get("/runs"))["items"][0]["parameters"] == {"x": deep[0]}
    assert (await chain_api.get(f"/runs/{run_id}/nodes"))["items"][0]["artifact"] == deep


async def test_manual_artifact_is_stored_by_its_size(chain_api: ChainApi) -> None:
    await chain_api.define(line("a", "b"))
    run_id = await chain_api.start()
    await chain_api.work(status=JobStatus.FAILED)
    large = ["x" * 300_000]
    done = await chain_api.post(f"/runs/{run_id}/nodes/a:complete", 200, {"artifact": large})
    assert (done["artifact"], done["artifact_bytes"]) == (None, 300_004), "it is no burden on every list"
    assert await chain_api.get(f"/runs/{run_id}/nodes/a/artifact") == large
    await chain_api.work(status=JobStatus.FAILED)
    done = await chain_api.post(f"/runs/{run_id}/nodes/b:complete", 200, {"artifact": "\xe4"})
    assert (done["artifact"], done["artifact_bytes"]) == ("\xe4", 4)


async def test_what_a_mapped_node_left_is_the_list_of_what_its_instances_did(chain_api: ChainApi) -> None:
    await chain_api.define(
        {"nodes": [{"id": "m", "type": "noop", "map": {"over": [1, 2]}}, {"id": "n", "type": "noop"}]}
    )
    run_id = await chain_api.start()
    await chain_api.work(outcome=NodeExpanded((1, 2)))
    await chain_api.work()
    assert await chain_api.get(f"/runs/{run_id}/nodes/m/artifact") == [{"n": "m[0]"}, {"n": "m[1]"}]
    assert await chain_api.get(f"/runs/{run_id}/nodes/m[1]/artifact") == {"n": "m[1]"}
    assert await chain_api.get(f"/runs/{run_id}/nodes/n/artifact") is None


async def test_the_types_of_nodes_are_described(chain_api: ChainApi) -> None:
    found = {item["type"]: item["cfg_schema"] for item in (await chain_api.get("/executors"))["items"]}
    assert {"noop", "sleep", "http", "sandbox", "judge", "wait_approval", "chain", "notify"} <= set(found)
    assert found["sleep"]["type"] == "object"
