"""Whose rights a run has that was started over HTTP, and what controlling it does not pass over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge.store.chains.models import Artifact, NodeSuspended
from tests.support.asgi_app import AsgiApp
from tests.unit.services.test_chains import ROOT, ChainApi, line


@pytest.fixture
async def chain_api(api_on_both: AsgiApp) -> Any:
    """An admin at the API."""
    async with api_on_both.as_role("admin") as client:
        yield ChainApi(api_on_both, client)


async def authority(chain_api: ChainApi, run_id: str) -> list[dict[str, str | None]]:
    found = (await chain_api.api.store.row("SELECT authority FROM chain_runs WHERE id = :id", id=run_id))["authority"]
    document: list[dict[str, str | None]] = json.loads(found) if isinstance(found, str) else found
    return document


async def test_a_run_acts_for_the_user_and_the_token_that_started_it(chain_api: ChainApi) -> None:
    await chain_api.define(line("a"))
    run_id = await chain_api.start()
    me = (await chain_api.client.get(f"{ROOT}/me")).json()
    (token,) = await chain_api.api.store.rows("SELECT id FROM api_tokens WHERE user_id = :id", id=me["id"])
    assert await authority(chain_api, run_id) == [{"user_id": me["id"], "token_id": token["id"]}]
    user_id, secret = await chain_api.api.user("setter", "eva")
    async with chain_api.api.client(secret) as setter:
        started = (await setter.post(f"{ROOT}/chains/nightly:start")).json()["run_id"]
    assert (await authority(chain_api, started))[0]["user_id"] == user_id
    again = await chain_api.post(f"/runs/{started}:rerun", 202)
    assert (await authority(chain_api, again["run_id"]))[0]["user_id"] == me["id"], "a rerun acts for its requester"


async def test_a_question_of_a_sub_chain_is_not_passed_over_by_completing_the_node_that_waits_for_it(
    chain_api: ChainApi,
) -> None:
    asks = {"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?", "approvers": ["eva"]}}
    await chain_api.define({"nodes": [asks]}, name="asking")
    await chain_api.define({"nodes": [{"id": "sub", "type": "chain", "cfg": {"chain": "asking"}}]}, name="outer")
    _, secret = await chain_api.api.user("setter", "ida")
    async with chain_api.api.client(secret) as setter:
        run_id = (await setter.post(f"{ROOT}/chains/outer:start")).json()["run_id"]
        child = (await setter.post(f"{ROOT}/chains/asking:start")).json()["run_id"]
        await chain_api.work(outcome=NodeSuspended("run", child, Artifact(json.dumps({"run_id": child}))))
        path = f"{ROOT}/runs/{run_id}/nodes/sub:complete"
        refused = await setter.post(path, json={"artifact": {"approved": True}})
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
        await setter.post(f"{ROOT}/runs/{child}:stop")  # the sub-chain comes to nothing, and the node fails
        refused = await setter.post(path, json={})
        assert refused.status_code == 403
    assert (await chain_api.post(f"/runs/{run_id}/nodes/sub:complete", 200, {}))["status"] == "success"
