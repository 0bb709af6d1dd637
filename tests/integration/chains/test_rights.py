"""The permissions of a run: those of the user who started it and of the token used, as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.chains import executor_registry
from adjudge.chains.rights import rights_of
from adjudge.chains.triggers import TriggerCommands, TriggerScheduler
from adjudge.cli.wiring.chains import run_starter
from adjudge.domain.authority import Authority, Grant
from adjudge.domain.errors import NodeRefused, NotFound
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import ALL_SCOPES, Permission
from adjudge.store import Tx
from adjudge.store.accounts import api_tokens, users
from adjudge.store.chains import definitions
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.chains.models import NewChainRun
from adjudge.store.problems import commands as problem_rows
from adjudge.store.problems.models import NewProblem, NewRevision
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.handlers.node_inputs import NodeInputs
from tests.integration.chains.harness import ChainHarness, dag

P = Permission
DIGEST: Final = "0" * 64
NEEDS: Final[Mapping[str, tuple[tuple[dict[str, Any], Permission], ...]]] = {
    "noop": (),
    "sleep": (),
    "wait_approval": (),
    "http": (({"url": "https://example.org"}, P.RUN_CONTROL),),
    "notify": (({"text": "hello"}, P.RUN_CONTROL),),
    "chain": (({"chain": "other"}, P.RUN_CONTROL),),
    "sandbox": (({"argv": ["/usr/bin/true"]}, P.EXECUTION_CREATE),),
    "judge": (({"problem": "sum", "language": "c", "source": "x"}, P.SUBMISSION_CREATE),),
    "rejudge": (
        ({"action": "preview", "problem": "sum"}, P.REJUDGE_WRITE),
        ({"action": "apply", "batch_id": "b"}, P.REJUDGE_APPLY),
        ({"action": "discard", "batch_id": "b"}, P.REJUDGE_APPLY),
    ),
    "contest.start": (({"contest": "final"}, P.CONTEST_JOIN),),
    "contest.freeze": (({"contest": "final"}, P.CONTEST_JOIN),),
    "contest.thaw": (({"contest": "final"}, P.CONTEST_JOIN),),
    "contest.finalize": (({"contest": "final"}, P.CONTEST_JOIN),),
    "contest.export": (({"contest": "final"}, P.CONTEST_JOIN),),
    "contest.rejudge_preview": (({"batch_id": None}, P.REJUDGE_WRITE),),
    "problem.check": (({"package": DIGEST}, P.PROBLEM_WRITE),),
    "problem.generate": (({"package": DIGEST, "problem": "sum"}, P.PROBLEM_WRITE),),
    "problem.verify": (({"problem": "sum"}, P.PROBLEM_READ),),
    "problem.publish": (({"revision_id": "r"}, P.PROBLEM_PUBLISH),),
    "problem.list": (({}, P.PROBLEM_READ),),
}
"""Type → cfgs with the permission that each needs. Permissions on objects of other users are tested below."""
CASES: Final = [(name, cfg, missing) for name, found in NEEDS.items() for cfg, missing in found]


async def add_user(tx: Tx, role: str, scopes: frozenset[str] | None = None) -> Grant:
    """Insert a user and, if ``scopes`` are given, a token with them."""
    user_id = new_id()
    await users.insert(tx, users.NewUser(user_id, f"u-{user_id[-12:]}", role=role))
    if scopes is None:
        return Grant(user_id)
    token_id = new_id()
    await api_tokens.insert(tx, api_tokens.NewApiToken(token_id, user_id, "t", api_tokens.new_secret(), tuple(scopes)))
    return Grant(user_id, token_id)


async def execute(harness: ChainHarness, folder: Path, type_name: str, cfg: Mapping[str, Any], grant: Grant) -> object:
    """Run one node for the user of ``grant`` with its real executor, which can use nothing but the database."""
    parts = {"database": harness.store.database, "start_chain": harness.engine.start}
    unusable = {name: object() for name in ("submissions", "rejudging", "blobs", "cache", "judge", "outgoing", "jobs")}
    executors = executor_registry.discover_executors().build({**unusable, **parts})
    handler = NodeHandler(harness.store.database, DirectoryBlobStore(folder), executors, harness.engine.dags)
    chain = await harness.define(dag({"id": "a", "type": type_name, "cfg": dict(cfg)}), new_id())
    await harness.store.transact(
        lambda tx: harness.engine.start(tx, NewChainRun(chain.id, actor="user", authority=Authority((grant,))))
    )
    return await handler.run((await harness.claim("a"))["a"])


def test_every_built_in_node_type_is_tested() -> None:
    assert {
        name
        for name, item in executor_registry.discover_executors().executors.items()
        if item.distribution == "adjudge"
    } == set(NEEDS)


@pytest.mark.parametrize(("type_name", "cfg", "missing"), CASES, ids=[f"{name}-{p}" for name, _, p in CASES])
async def test_user_without_the_permission_is_refused(
    harness: ChainHarness, tmp_path: Path, type_name: str, cfg: Mapping[str, Any], missing: Permission
) -> None:
    """The user is an admin whose token has all other scopes: scopes also limit chain runs."""
    scopes = frozenset(str(item) for item in Permission if item is not missing)
    grant = await harness.store.transact(lambda tx: add_user(tx, "admin", scopes))
    with pytest.raises(NodeRefused, match=f"permission {missing}"):
        await execute(harness, tmp_path, type_name, cfg, grant)


async def add_problem(tx: Tx, owner_id: str) -> tuple[str, str]:
    """Insert a problem with a draft; return the ids of the problem and of its revision."""
    problem_id, revision_id = new_id(), new_id()
    await problem_rows.insert(tx, NewProblem(problem_id, f"p-{problem_id[-8:]}", "P", owner_id))
    await problem_rows.add_revision(
        tx,
        NewRevision(
            id=revision_id,
            problem_id=problem_id,
            format="icpc",
            manifest_digest=DIGEST,
            created_by=owner_id,
            definition={},
            files=(),
        ),
    )
    return problem_id, revision_id


@pytest.mark.parametrize("role", ["service", "setter", "contestant"])
async def test_chain_cannot_read_secret_tests_of_other_users(harness: ChainHarness, tmp_path: Path, role: str) -> None:
    """A revision of another user is reported as not found."""
    owner = await harness.store.transact(lambda tx: add_user(tx, "setter"))
    problem_id, revision_id = await harness.store.transact(lambda tx: add_problem(tx, owner.user_id))
    grant = await harness.store.transact(lambda tx: add_user(tx, role))
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("problem.verify", {"revision_id": revision_id}),
        ("problem.verify", {"problem": problem_id}),
        ("judge", {"problem": problem_id, "revision_id": revision_id, "language": "c", "source_digest": DIGEST}),
    ]
    for type_name, cfg in wanted:
        with pytest.raises(NotFound):
            await execute(harness, tmp_path, type_name, {**cfg}, grant)
    with pytest.raises((NotFound, NodeRefused)):
        await execute(harness, tmp_path, "problem.publish", {"revision_id": revision_id}, grant)


async def test_permissions_are_current_and_limited_by_the_token(harness: ChainHarness) -> None:
    async def rights(grant: Grant) -> frozenset[Permission]:
        return (await harness.store.transact(lambda tx: rights_of(tx, Authority((grant,))))).permissions

    narrow = await harness.store.transact(lambda tx: add_user(tx, "admin", frozenset({"run:control", "problem:read"})))
    assert await rights(narrow) == {P.RUN_CONTROL, P.PROBLEM_READ}
    wide = await harness.store.transact(lambda tx: add_user(tx, "admin", frozenset({ALL_SCOPES})))
    assert await rights(wide) == frozenset(Permission)
    assert await rights(Grant(wide.user_id, narrow.token_id)) == frozenset(), "a token of another user"
    await harness.store.transact(lambda tx: api_tokens.revoke(tx, narrow.user_id, narrow.token_id or ""))
    assert await rights(narrow) == frozenset()
    await harness.store.write("UPDATE users SET role = 'contestant' WHERE id = :id", id=wide.user_id)
    assert P.CHAIN_WRITE not in await rights(wide)
    await harness.store.write("UPDATE users SET disabled_at = 1 WHERE id = :id", id=wide.user_id)
    assert await rights(wide) == frozenset()
    assert (await harness.store.transact(lambda tx: rights_of(tx, None))).permissions == frozenset()


async def test_required_password_change_restricts_sessions_but_not_tokens(harness: ChainHarness) -> None:
    """As for API requests: a token of the first admin works before the one-time password is changed."""
    grant = await harness.store.transact(lambda tx: add_user(tx, "admin", frozenset({"run:control"})))
    await harness.store.write("UPDATE users SET must_change_password = :yes WHERE id = :id", yes=True, id=grant.user_id)
    by_token = await harness.store.transact(lambda tx: rights_of(tx, Authority((grant,))))
    by_session = await harness.store.transact(lambda tx: rights_of(tx, Authority((Grant(grant.user_id),))))
    assert by_token.permissions == {P.RUN_CONTROL}
    assert by_session.permissions == frozenset()


async def test_triggered_run_has_the_permissions_shared_by_authors_of_trigger_and_chain(
    harness: ChainHarness, tmp_path: Path
) -> None:
    """No run is started after one of the authors is disabled or the token was revoked."""
    trigger_author = await harness.store.transact(
        lambda tx: add_user(tx, "admin", frozenset({"run:control", "problem:read"}))
    )
    chain_author = await harness.store.transact(
        lambda tx: add_user(tx, "admin", frozenset({"run:control", "chain:write"}))
    )
    document = dag({"id": "a", "type": "noop"})
    chain = await harness.store.transact(
        lambda tx: definitions.create(tx, name="c", dag=document, actor="x", authority=Authority((chain_author,)))
    )
    trigger = await harness.store.transact(
        lambda tx: TriggerCommands().create(
            tx, chain_id=chain.id, name="t", kind="webhook", spec={}, actor="x", authority=Authority((trigger_author,))
        )
    )
    scheduler = TriggerScheduler(harness.store.database, run_starter(harness.engine), name="s")

    async def call() -> int:
        secret = trigger.secret or ""
        await harness.store.transact(
            lambda tx: TriggerCommands().handle_webhook_call(
                tx, trigger.trigger_id, secret=secret, key=None, payload={}
            )
        )
        return await scheduler.run_once()

    assert await call() == 1
    job = (await harness.claim("a"))["a"]
    inputs = await NodeInputs(harness.store.database, harness.engine.dags).get(job)
    rights = await harness.store.transact(lambda tx: rights_of(tx, inputs.task.authority))
    assert (rights.user_id, rights.permissions) == (trigger_author.user_id, frozenset({P.RUN_CONTROL}))
    await harness.store.transact(lambda tx: api_tokens.revoke(tx, chain_author.user_id, chain_author.token_id or ""))
    assert await call() == 0
    row = await harness.store.database.read(lambda tx: chain_triggers.find(tx, trigger.trigger_id))
    assert "run:control" in (row.last_error or "")
