"""The client against a real server."""

from __future__ import annotations

import asyncio
import threading

import pytest

from adjudge.client import (
    AsyncClient,
    AuthenticationError,
    Client,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    SubmissionSpec,
    TriggerSpec,
)
from adjudge.domain.permissions import Role
from adjudge.domain.verdict import Verdict
from adjudge.services.users import UserSpec
from tests.support.http_server import RunningServer
from tests.support.published_problem import SOURCE, PublishedProblem, publish_problem

PASSWORD = "correct horse battery"
pytestmark = pytest.mark.slow
DAG = {"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "deps": ["a"]}]}


@pytest.fixture
def published_problem(server: RunningServer) -> PublishedProblem:
    return server.do(publish_problem(server.api))


@pytest.fixture
def token(server: RunningServer) -> str:
    return server.do(server.api.user("admin"))[1]


def _judge_later(
    server: RunningServer, published_problem: PublishedProblem, job_id: str, verdict: Verdict
) -> threading.Thread:
    thread = threading.Thread(target=lambda: server.do(published_problem.finish(job_id, verdict)))
    thread.start()
    return thread


def test_submission_is_watched_and_read(server: RunningServer, published_problem: PublishedProblem, token: str) -> None:
    with Client(server.url, token) as client:
        made = client.submit("sum", "cpp", SOURCE, key="once")
        assert client.submit("sum", "cpp", SOURCE, key="once") == made, "the key stands for one submission"
        with pytest.raises(ConflictError):
            client.submit("sum", "cpp", SOURCE + "//", key="once")
        judging = _judge_later(server, published_problem, made.job_id, Verdict.WA)
        events = [(event.name, event.status) for event in client.watch(made.submission_id)]
        judging.join()
        assert events[-2:] == [("status", "wrong_answer"), ("end", "wrong_answer")]
        (found,) = client.wait([made.submission_id], timeout_sec=10)
        assert (found.verdict, found.is_finished, found.problem) == ("WA", True, "sum")
        assert client.source(found.id) == SOURCE
        document = client.results(found.id).document
        assert document is not None
        assert document["verdict"] == "WA"
        assert [item.id for item in client.submissions(problem="sum").items] == [found.id]
        with pytest.raises(NotFoundError, match="SUBMISSION_NOT_FOUND"):
            client.submission("nothing")
        with pytest.raises(InvalidRequestError) as raised:
            client.submit("sum", "klingon", SOURCE)
        assert raised.value.request_id


def test_wait_ends_with_the_last_verdict(
    server: RunningServer, published_problem: PublishedProblem, token: str
) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, token) as client:
            made = await client.submit_batch([SubmissionSpec("sum", "cpp", SOURCE) for _ in range(3)])
            waiting = asyncio.create_task(client.wait([item.submission_id for item in made]))
            for item in made:
                await asyncio.to_thread(server.do, published_problem.finish(item.job_id))
            assert [item.verdict for item in await waiting] == ["AC"] * 3

    asyncio.run(run())


def test_chain_is_applied_and_its_run_controlled(server: RunningServer, token: str) -> None:
    with Client(server.url, token) as client:
        daily = TriggerSpec("daily", "cron", {"cron": "0 3 * * *", "timezone": "Europe/Berlin"})
        hook = TriggerSpec("hook", "webhook", {})
        first = client.chain_apply("night", DAG, triggers=[daily, hook])
        assert (first.outcome, dict(first.triggers)) == ("created", {"daily": "created", "hook": "created"})
        assert list(first.secrets) == ["hook"]
        again = client.chain_apply("night", DAG, triggers=[daily, hook])
        assert (again.outcome, set(again.triggers.values())) == ("unchanged", {"unchanged"})
        changed = client.chain_apply("night", DAG, description="by night", triggers=[daily])
        assert (changed.outcome, changed.chain.version, changed.triggers["hook"]) == ("changed", 2, "removed")
        assert [item.name for item in client.chains(keyword="ight")] == ["night"]
        run_id = client.chain_start("night", key="k").run_id
        assert not client.chain_start("night", key="k").is_new
        assert client.run_stop(run_id, reason="a test").is_finished
        assert {node.status for node in client.run_nodes(run_id)} == {"stopped"}
        for node_id in ("b", "a"):
            assert client.node_complete(run_id, node_id, artifact={"n": 1}).status == "success"
        assert client.run_wait(run_id, timeout_sec=10).status == "success"
        assert [getattr(item, "node_id", "run") for item in client.run_watch(run_id)][:2] == ["a", "b"]
        assert [item.id for item in client.runs(chain="night").items] == [run_id]


def test_token_is_created_used_and_revoked(server: RunningServer, token: str) -> None:
    order = UserSpec("ada", Role.CONTESTANT, None, password=PASSWORD, must_change_password=False)
    server.do(server.api.services.users.create_user(order, actor="test"))
    with Client(server.url) as client:
        with pytest.raises(AuthenticationError, match="LOGIN_FAILED"):
            client.login("ada", "wrong", token_name="laptop")
        made = client.login("ada", PASSWORD, token_name="laptop", expires_in_days=1)
    with Client(server.url, made.secret) as client:
        assert (client.me().name, client.me().role) == ("ada", "contestant")
        client.revoke_token(made.id)
        with pytest.raises(AuthenticationError):
            client.me()
