"""Whose run it is: what one did not start oneself one does not know of, unless one is asked or may see everybody's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.store.accounts import api_tokens
from adjudge.store.chains.models import JOB_KIND_NODE, Artifact, NewChainRun, NodeSuspended
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import JobResult
from tests.support.asgi_app import AsgiApp
from tests.support.store_harness import fence_of

ROOT = "/api/v1"
READING = ("", "/log", "/nodes", "/nodes/a", "/nodes/a/artifact", "/nodes/a/log", "/events")
CHANGING = (":stop", ":rerun", "/nodes/a:retry", "/nodes/a:complete")
PEOPLE = {"eva": "setter", "ben": "setter", "joe": "judge", "ann": "admin", "bot": "service"}


@dataclass
class RunAccessFixture:
    """Some people at the API."""

    api: AsgiApp
    chain_id: str = ""
    fixtures: dict[str, httpx.AsyncClient] = field(default_factory=dict)

    async def start(self, who: str) -> str:
        answer = await self.fixtures[who].post(f"{ROOT}/chains/{self.chain_id}:start")
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    async def triggered(self) -> str:
        wanted = NewChainRun(self.chain_id, actor="trigger:t1", trigger_kind="cron")
        return (await self.api.store.transact(lambda tx: self.api.services.chain_runs.engine.start(tx, wanted))).run_id

    async def ask(self, run_id: str, **asked: Any) -> None:
        """Let the node of a run ask something."""
        jobs = JobCommands({JOB_KIND_NODE: self.api.services.chain_runs.engine.job_listener})
        row = await self.api.store.row("SELECT id FROM jobs WHERE chain_run_id = :id", id=run_id)
        claimed = await self.api.store.transact(lambda tx: jobs.claim(tx, [row["id"]], worker="w1", lease_ms=60_000))
        waits = NodeSuspended("approval", f"{run_id}/a/1", Artifact(json.dumps(asked)))
        end = JobResult(fence_of(claimed.done[0]), typed_result=waits)
        await self.api.store.transact(lambda tx: jobs.finish_and_claim_next(tx, [end]))

    async def code(self, who: str, method: str, path: str, body: Any = None) -> int:
        return (await self.fixtures[who].request(method, f"{ROOT}/runs/{path}", json=body)).status_code

    async def listed(self, who: str, **query: Any) -> list[str]:
        answer = await self.fixtures[who].get(f"{ROOT}/runs", params=query)
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]


@pytest.fixture
async def run_access(api_on_both: AsgiApp) -> AsyncIterator[RunAccessFixture]:
    run_access = RunAccessFixture(api_on_both)
    async with AsyncExitStack() as fixtures:
        for name, role in PEOPLE.items():
            _, secret = await api_on_both.user(role, name)
            run_access.fixtures[name] = await fixtures.enter_async_context(api_on_both.client(secret))
        dag = {"nodes": [{"id": "a", "type": "wait_approval", "cfg": {"question": "Go?"}}]}
        made = await run_access.fixtures["ann"].post(f"{ROOT}/chains", json={"name": "c", "dag": dag})
        run_access.chain_id = made.json()["id"]
        yield run_access


async def test_somebody_elses_run_is_not_there(run_access: RunAccessFixture) -> None:
    run_id = await run_access.start("eva")
    for path in READING:
        if path != "/events":  # it lasts as long as the run
            assert await run_access.code("eva", "GET", run_id + path) == 200, path
        for other in ("ben", "bot"):
            assert await run_access.code(other, "GET", run_id + path) == 404, path
    for path in CHANGING:
        assert await run_access.code("ben", "POST", run_id + path) == 404, path
        assert await run_access.code("joe", "POST", run_id + path) == 403, path
    assert await run_access.code("eva", "POST", f"{run_id}:stop") == 200


async def test_staff_read_every_run_and_admins_change_it(run_access: RunAccessFixture) -> None:
    run_id = await run_access.triggered()
    for path in READING[:-1]:
        assert [await run_access.code(who, "GET", run_id + path) for who in ("joe", "ann", "eva")] == [200, 200, 404]
    assert await run_access.code("ann", "POST", f"{run_id}:stop") == 200
    assert await run_access.code("ann", "POST", f"{run_id}/nodes/a:retry") == 200


async def test_lists_hold_what_one_may_know_of_page_by_page(run_access: RunAccessFixture) -> None:
    mine = [await run_access.start("eva") for _ in range(3)]
    other = await run_access.start("ben")
    ticked = await run_access.triggered()
    everything = sorted([*mine, other, ticked], reverse=True)
    assert await run_access.listed("ann") == everything
    assert await run_access.listed("joe") == everything
    assert await run_access.listed("eva") == sorted(mine, reverse=True)
    assert await run_access.listed("bot") == []
    await run_access.ask(other, question="Go?", approvers=["eva"])
    seen = sorted([*mine, other], reverse=True)
    assert await run_access.listed("eva") == seen
    page = (await run_access.fixtures["eva"].get(f"{ROOT}/runs", params={"limit": 3})).json()
    rest = (await run_access.fixtures["eva"].get(f"{ROOT}/runs", params={"limit": 3, "cursor": page["next"]})).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == seen
    assert await run_access.listed("eva", status="running") == [other]
    assert await run_access.listed("eva", chain="c", status="pending") == sorted(mine, reverse=True)


async def test_approver_may_read_and_decide_and_nothing_else(run_access: RunAccessFixture) -> None:
    run_id = await run_access.start("ben")
    await run_access.ask(run_id, question="Go?", approvers=["eva", "joe"])
    yes = {"approved": True, "reason": "it is good"}
    assert await run_access.code("bot", "POST", f"{run_id}/nodes/a:decide", yes) == 404
    assert await run_access.code("eva", "GET", f"{run_id}/nodes/a") == 200
    assert await run_access.code("eva", "POST", f"{run_id}:stop") == 403
    assert await run_access.code("ben", "POST", f"{run_id}/nodes/a:decide", yes) == 403, "it is not his to answer"
    assert await run_access.code("joe", "POST", f"{run_id}/nodes/a:decide", yes) == 200, "though he may change no run"
    assert await run_access.code("joe", "GET", run_id) == 200
    assert await run_access.code("eva", "GET", run_id) == 404, "nobody asks her any more"


async def test_a_token_that_may_only_read_answers_nothing(run_access: RunAccessFixture) -> None:
    run_id = await run_access.start("ben")
    await run_access.ask(run_id, question="Go?", approvers=["joe"])
    joe = (await run_access.api.store.row("SELECT id FROM users WHERE name = 'joe'"))["id"]
    said = []
    for scope in ("run:read_all", "run:answer"):
        secret = api_tokens.new_secret()
        token = api_tokens.NewApiToken(new_id(), joe, scope, secret, ("run:read", scope))
        await run_access.api.store.transact(partial(api_tokens.insert, token=token))
        async with run_access.api.client(secret) as client:
            answer = {"approved": True, "reason": "it is good"}
            found = await client.post(f"{ROOT}/runs/{run_id}/nodes/a:decide", json=answer)
        said.append((found.status_code, "run:answer" in found.text))
    assert said == [(403, True), (200, False)]


async def test_a_question_to_nobody_in_particular_is_for_those_who_may_change_the_run(
    run_access: RunAccessFixture,
) -> None:
    run_id = await run_access.start("ben")
    await run_access.ask(run_id, question="Go?")
    no = {"approved": False, "reason": "not yet"}
    assert await run_access.code("eva", "POST", f"{run_id}/nodes/a:decide", no) == 404
    assert await run_access.code("joe", "POST", f"{run_id}/nodes/a:decide", no) == 403
    assert await run_access.code("ben", "POST", f"{run_id}/nodes/a:decide", no) == 200


@pytest.mark.parametrize("left", [{"approvers": 5}, {"approvers": [["eva"]]}, {"by": ["eva"]}, "eva", 7])
async def test_manually_completed_node_is_not_evaluated(run_access: RunAccessFixture, left: Any) -> None:
    run_id = await run_access.start("ben")
    await run_access.ask(run_id, question="Go?")
    done = {"artifact": left, "reason": "by hand"}
    assert await run_access.code("ann", "POST", f"{run_id}/nodes/a:complete", done) == 200
    assert await run_access.code("ben", "GET", run_id) == 200
    assert await run_access.code("eva", "GET", run_id) == 404


async def test_run_is_owned_by_user_id_and_shown_with_the_name(run_access: RunAccessFixture) -> None:
    run_id = await run_access.start("eva")
    me = (await run_access.fixtures["eva"].get(f"{ROOT}/me")).json()
    row = await run_access.api.store.row("SELECT started_by, actor FROM chain_runs WHERE id = :id", id=run_id)
    assert (row["started_by"], row["actor"]) == (me["id"], me["id"])
    shown = (await run_access.fixtures["eva"].get(f"{ROOT}/runs/{run_id}")).json()
    assert shown["started_by"] == "eva"


async def test_run_of_an_actor_with_the_users_name_is_not_theirs(run_access: RunAccessFixture) -> None:
    wanted = NewChainRun(run_access.chain_id, actor="eva", trigger_kind="cron")
    engine = run_access.api.services.chain_runs.engine
    run_id = (await run_access.api.store.transact(lambda tx: engine.start(tx, wanted))).run_id
    assert await run_access.code("eva", "GET", run_id) == 404
    assert await run_access.listed("eva") == []
