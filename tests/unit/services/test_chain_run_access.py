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
    desks: dict[str, httpx.AsyncClient] = field(default_factory=dict)

    async def start(self, who: str) -> str:
        answer = await self.desks[who].post(f"{ROOT}/chains/{self.chain_id}:start")
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    async def triggered(self) -> str:
        wanted = NewChainRun(self.chain_id, actor="trigger:t1", trigger_kind="cron")
        return (await self.api.store.transact(lambda tx: self.api.parts.engine.start(tx, wanted))).run_id

    async def ask(self, run_id: str, **asked: Any) -> None:
        """Let the node of a run ask something."""
        jobs = JobCommands({JOB_KIND_NODE: self.api.parts.engine.owner})
        row = await self.api.store.row("SELECT id FROM jobs WHERE chain_run_id = :id", id=run_id)
        claimed = await self.api.store.transact(lambda tx: jobs.claim(tx, [row["id"]], worker="w1", lease_ms=60_000))
        waits = NodeSuspended("approval", f"{run_id}/a/1", Artifact(json.dumps(asked)))
        end = JobResult(fence_of(claimed.done[0]), typed_result=waits)
        await self.api.store.transact(lambda tx: jobs.finish_and_claim_next(tx, [end]))

    async def code(self, who: str, method: str, path: str, body: Any = None) -> int:
        return (await self.desks[who].request(method, f"{ROOT}/runs/{path}", json=body)).status_code

    async def listed(self, who: str, **query: Any) -> list[str]:
        answer = await self.desks[who].get(f"{ROOT}/runs", params=query)
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]


@pytest.fixture
async def office(api_on_both: AsgiApp) -> AsyncIterator[RunAccessFixture]:
    office = RunAccessFixture(api_on_both)
    async with AsyncExitStack() as desks:
        for name, role in PEOPLE.items():
            _, secret = await api_on_both.user(role, name)
            office.desks[name] = await desks.enter_async_context(api_on_both.client(secret))
        dag = {"nodes": [{"id": "a", "type": "wait_approval", "cfg": {"question": "Go?"}}]}
        made = await office.desks["ann"].post(f"{ROOT}/chains", json={"name": "c", "dag": dag})
        office.chain_id = made.json()["id"]
        yield office


async def test_somebody_elses_run_is_not_there(office: RunAccessFixture) -> None:
    run_id = await office.start("eva")
    for path in READING:
        if path != "/events":  # it lasts as long as the run
            assert await office.code("eva", "GET", run_id + path) == 200, path
        for other in ("ben", "bot"):
            assert await office.code(other, "GET", run_id + path) == 404, path
    for path in CHANGING:
        assert await office.code("ben", "POST", run_id + path) == 404, path
        assert await office.code("joe", "POST", run_id + path) == 403, path
    assert await office.code("eva", "POST", f"{run_id}:stop") == 200


async def test_staff_read_every_run_and_admins_change_it(office: RunAccessFixture) -> None:
    run_id = await office.triggered()
    for path in READING[:-1]:
        assert [await office.code(who, "GET", run_id + path) for who in ("joe", "ann", "eva")] == [200, 200, 404]
    assert await office.code("ann", "POST", f"{run_id}:stop") == 200
    assert await office.code("ann", "POST", f"{run_id}/nodes/a:retry") == 200


async def test_lists_hold_what_one_may_know_of_page_by_page(office: RunAccessFixture) -> None:
    mine = [await office.start("eva") for _ in range(3)]
    other = await office.start("ben")
    ticked = await office.triggered()
    everything = sorted([*mine, other, ticked], reverse=True)
    assert await office.listed("ann") == everything
    assert await office.listed("joe") == everything
    assert await office.listed("eva") == sorted(mine, reverse=True)
    assert await office.listed("bot") == []
    await office.ask(other, question="Go?", approvers=["eva"])
    seen = sorted([*mine, other], reverse=True)
    assert await office.listed("eva") == seen
    page = (await office.desks["eva"].get(f"{ROOT}/runs", params={"limit": 3})).json()
    rest = (await office.desks["eva"].get(f"{ROOT}/runs", params={"limit": 3, "cursor": page["next"]})).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == seen
    assert await office.listed("eva", status="running") == [other]
    assert await office.listed("eva", chain="c", status="pending") == sorted(mine, reverse=True)


async def test_whoever_is_asked_may_look_and_answer_and_nothing_else(office: RunAccessFixture) -> None:
    run_id = await office.start("ben")
    await office.ask(run_id, question="Go?", approvers=["eva", "joe"])
    yes = {"approved": True, "reason": "it is good"}
    assert await office.code("bot", "POST", f"{run_id}/nodes/a:decide", yes) == 404
    assert await office.code("eva", "GET", f"{run_id}/nodes/a") == 200
    assert await office.code("eva", "POST", f"{run_id}:stop") == 403
    assert await office.code("ben", "POST", f"{run_id}/nodes/a:decide", yes) == 403, "it is not his to answer"
    assert await office.code("joe", "POST", f"{run_id}/nodes/a:decide", yes) == 200, "though he may change no run"
    assert await office.code("joe", "GET", run_id) == 200
    assert await office.code("eva", "GET", run_id) == 404, "nobody asks her any more"


async def test_a_token_that_may_only_read_answers_nothing(office: RunAccessFixture) -> None:
    run_id = await office.start("ben")
    await office.ask(run_id, question="Go?", approvers=["joe"])
    joe = (await office.api.store.row("SELECT id FROM users WHERE name = 'joe'"))["id"]
    said = []
    for scope in ("run:read_all", "run:answer"):
        secret = api_tokens.new_secret()
        token = api_tokens.NewApiToken(new_id(), joe, scope, secret, ("run:read", scope))
        await office.api.store.transact(partial(api_tokens.insert, token=token))
        async with office.api.client(secret) as client:
            answer = {"approved": True, "reason": "it is good"}
            found = await client.post(f"{ROOT}/runs/{run_id}/nodes/a:decide", json=answer)
        said.append((found.status_code, "run:answer" in found.text))
    assert said == [(403, True), (200, False)]


async def test_a_question_to_nobody_in_particular_is_for_those_who_may_change_the_run(office: RunAccessFixture) -> None:
    run_id = await office.start("ben")
    await office.ask(run_id, question="Go?")
    no = {"approved": False, "reason": "not yet"}
    assert await office.code("eva", "POST", f"{run_id}/nodes/a:decide", no) == 404
    assert await office.code("joe", "POST", f"{run_id}/nodes/a:decide", no) == 403
    assert await office.code("ben", "POST", f"{run_id}/nodes/a:decide", no) == 200


@pytest.mark.parametrize("left", [{"approvers": 5}, {"approvers": [["eva"]]}, {"by": ["eva"]}, "eva", 7])
async def test_what_was_completed_by_hand_asks_nobody_whatever_it_left(office: RunAccessFixture, left: Any) -> None:
    run_id = await office.start("ben")
    await office.ask(run_id, question="Go?")
    done = {"artifact": left, "reason": "by hand"}
    assert await office.code("ann", "POST", f"{run_id}/nodes/a:complete", done) == 200
    assert await office.code("ben", "GET", run_id) == 200
    assert await office.code("eva", "GET", run_id) == 404
