"""Named secrets over HTTP, route by route, and what a node that uses one leaves behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.domain.errors import InvalidInput
from adjudge.services.secrets import keyring
from adjudge.store import Tx
from adjudge.store.chains import secrets
from adjudge.store.chains.models import JOB_KIND_NODE, NodeDone, NodeStopped
from adjudge.store.jobs.commands import JobCommands
from adjudge.worker.handlers.node import NodeHandler
from tests.support.asgi_app import AsgiApp
from tests.support.log_capture import capture_logs
from tests.unit.services.test_chains import ROOT, ChainApi

VALUE = "correct-horse-battery"
DAG = {
    "nodes": [
        {
            "id": "call",
            "type": "http",
            "cfg": {"url": "https://example.org/", "headers": {"Authorization": "Bearer {{ secrets.TOKEN }}"}},
        }
    ]
}


@pytest.fixture
async def secrets_api(api: AsgiApp) -> Any:
    """An admin at the API."""
    async with api.as_role("admin") as client:
        yield ChainApi(api, client)


class Echo:
    """An executor that repeats what it was given everywhere."""

    type: ClassVar[str] = "http"
    secret_fields: ClassVar[frozenset[str]] = frozenset({"headers"})
    cfg_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.seen = ""

    async def execute(self, context: NodeContext) -> NodeResult:
        self.seen = context.cfg["headers"]["Authorization"]
        await context.log(f"sent {self.seen}")
        await context.save_checkpoint({"sent": self.seen})
        if self.fails:
            raise InvalidInput(f"refused {self.seen}", sent=self.seen)
        return NodeResult({"echo": [self.seen]})


async def run_node(secrets_api: ChainApi, executor: Echo, run_id: str) -> Any:
    services = secrets_api.api.services
    handler = NodeHandler(
        services.ops.database,
        services.run_files.blobs,
        {"http": executor},
        services.chain_runs.engine.dags,
        keyring=keyring(services.settings),
    )
    jobs = JobCommands({JOB_KIND_NODE: services.chain_runs.engine.job_listener})
    row = await secrets_api.api.store.row("SELECT id FROM jobs WHERE chain_run_id = :id", id=run_id)
    job = (
        await secrets_api.api.store.transact(lambda tx: jobs.claim(tx, [row["id"]], worker="w", lease_ms=60_000))
    ).done[0]
    return (await handler.run(job)).typed_result


async def test_a_secret_is_set_listed_and_deleted_and_never_read_back(secrets_api: ChainApi) -> None:
    assert (await secrets_api.client.put(f"{ROOT}/secrets/TOKEN", json={"value": VALUE})).status_code == 204
    listed = await secrets_api.client.get(f"{ROOT}/secrets")
    assert [item["name"] for item in listed.json()["items"]] == ["TOKEN"]
    assert VALUE not in listed.text
    assert (await secrets_api.client.get(f"{ROOT}/secrets/TOKEN")).status_code in (404, 405)
    stored = json.dumps(await secrets_api.api.store.rows("SELECT * FROM chain_secrets"))
    assert VALUE not in stored + json.dumps(await secrets_api.api.store.rows("SELECT * FROM audit_log"), default=str)
    assert (await secrets_api.client.delete(f"{ROOT}/secrets/TOKEN")).status_code == 204
    gone = await secrets_api.client.delete(f"{ROOT}/secrets/TOKEN")
    assert (gone.status_code, gone.json()["code"]) == (404, "SECRET_NOT_FOUND")


async def test_wrong_names_and_values_are_refused_and_not_repeated(secrets_api: ChainApi) -> None:
    for name, body in (("a-b", {"value": VALUE}), ("T", {"value": "short-1"}), ("T", {"value": [VALUE]}), ("T", {})):
        refused = await secrets_api.client.put(f"{ROOT}/secrets/{name}", json=body)
        assert refused.status_code == 400, refused.text
        assert VALUE not in refused.text
        assert "short-1" not in refused.text


async def test_a_secret_set_while_the_key_is_rotated_is_encrypted_with_the_new_key(
    secrets_api: ChainApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rotation reads all rows before this one is there, and removes the old key after it was written."""
    keys, put = keyring(secrets_api.api.services.settings), secrets.put

    async def rotated(tx: Tx, name: str, ciphertext: str, *, actor: str) -> None:
        keys.add_key()
        keys.forget_old_keys()
        await put(tx, name, ciphertext, actor=actor)

    monkeypatch.setattr(secrets, "put", rotated)
    assert (await secrets_api.client.put(f"{ROOT}/secrets/TOKEN", json={"value": VALUE})).status_code == 204
    row = await secrets_api.api.store.row("SELECT ciphertext FROM chain_secrets")
    assert keys.decrypt("TOKEN", row["ciphertext"]) == VALUE


@pytest.mark.parametrize("role", ["setter", "judge", "service", "contestant"])
async def test_only_those_who_may_write_secrets_reach_any_route(secrets_api: ChainApi, role: str) -> None:
    async with secrets_api.api.as_role(role) as other:
        answers = [
            await other.get(f"{ROOT}/secrets"),
            await other.put(f"{ROOT}/secrets/TOKEN", json={"value": VALUE}),
            await other.delete(f"{ROOT}/secrets/TOKEN"),
        ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]


async def test_a_node_gets_the_value_and_nothing_it_leaves_behind_shows_it(secrets_api: ChainApi) -> None:
    await secrets_api.client.put(f"{ROOT}/secrets/TOKEN", json={"value": VALUE})
    await secrets_api.define(DAG)
    run_id, executor = await secrets_api.start(), Echo()
    outcome = await run_node(secrets_api, executor, run_id)
    assert executor.seen == f"Bearer {VALUE}"
    assert isinstance(outcome, NodeDone)
    assert json.loads(outcome.artifact.text or "") == {"echo": ["Bearer ***"]}
    failed = await secrets_api.start()
    with pytest.raises(InvalidInput) as refused:
        await run_node(secrets_api, Echo(fails=True), failed)
    assert VALUE not in str(refused.value) + repr(refused.value.fields)
    assert refused.value.__cause__ is None
    tables = (
        "chain_runs",
        "chain_nodes",
        "chain_node_logs",
        "chain_checkpoints",
        "chain_versions",
        "jobs",
        "audit_log",
    )
    for table in tables:
        assert VALUE not in json.dumps(await secrets_api.api.store.rows(f"SELECT * FROM {table}"), default=str), table
    for where in (f"/runs/{run_id}", f"/runs/{run_id}/dag", f"/runs/{run_id}/nodes", "/chains/nightly"):
        assert VALUE not in json.dumps(await secrets_api.get(where))


async def test_the_log_of_a_node_that_fails_while_its_run_stops_does_not_show_the_value(secrets_api: ChainApi) -> None:
    class Stopped(Echo):
        async def execute(self, context: NodeContext) -> NodeResult:
            cast("asyncio.Event", context.stop_requested).set()
            return await super().execute(context)

    await secrets_api.client.put(f"{ROOT}/secrets/TOKEN", json={"value": VALUE})
    await secrets_api.define(DAG)
    with capture_logs() as lines:
        outcome = await run_node(secrets_api, Stopped(fails=True), await secrets_api.start())
    assert isinstance(outcome, NodeStopped)
    assert "node_stopped" in lines.getvalue()
    assert VALUE not in lines.getvalue()


async def test_a_secret_that_is_not_there_or_not_theirs_to_use_refuses_the_node(secrets_api: ChainApi) -> None:
    await secrets_api.define(DAG)
    with pytest.raises(Exception, match="There is no secret 'TOKEN'"):
        await run_node(secrets_api, Echo(), await secrets_api.start())
    await secrets_api.client.put(f"{ROOT}/secrets/TOKEN", json={"value": VALUE})
    body = {"name": "narrow", "scopes": ["run:control", "chain:read", "run:read"]}
    secret = (await secrets_api.client.post(f"{ROOT}/me/tokens", json=body)).json()["secret"]
    async with secrets_api.api.client(secret) as narrow:
        run_id = (await narrow.post(f"{ROOT}/chains/nightly:start")).json()["run_id"]
    executor = Echo()
    with pytest.raises(Exception, match="secret:use"):
        await run_node(secrets_api, executor, run_id)
    assert executor.seen == ""


async def test_saving_a_chain_that_uses_secrets_needs_permission(secrets_api: ChainApi, tmp_path: Path) -> None:
    body = {"name": "writer", "scopes": ["chain:write", "chain:read"]}
    secret = (await secrets_api.client.post(f"{ROOT}/me/tokens", json=body)).json()["secret"]
    async with secrets_api.api.client(secret) as writer:
        refused = await writer.post(f"{ROOT}/chains", json={"name": "c", "dag": DAG})
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
        applied = await writer.post(f"{ROOT}/chains:apply", json={"name": "c", "dag": DAG})
        assert applied.status_code == 403, applied.text
