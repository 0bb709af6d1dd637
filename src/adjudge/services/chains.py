"""Chains, their triggers and their runs: what people and programs ask of the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.api.parts import Parts
from adjudge.chains import apply, artifacts
from adjudge.chains.apply import ChainApplyResult
from adjudge.chains.approval import WAIT_APPROVAL, answer_approval
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.definition_file import ChainDefinition as ChainFile
from adjudge.chains.map_node import expand_map_nodes
from adjudge.chains.triggers import CreatedTrigger, TriggerCommands
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import CHAIN_RUN, ChainRunStatus
from adjudge.services import chain_run_access, secrets
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.chains import definitions
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.chains.models import (
    Artifact,
    ChainNodeRow,
    ChainPage,
    ChainRow,
    ChainRunRow,
    ChainStatusChange,
    NewChainRun,
    NodeLogRow,
    StartedChainRun,
)
from adjudge.store.chains.triggers import TriggerRow
from adjudge.store.engine.notify import Wakeup
from adjudge.store.ops import audit_log

_POLL_MS: Final = 1_000
_REST_SEC: Final = 0.1
"""Between two looks at a run: the bell rings for every run, and a look reads all nodes of one."""


@dataclass(frozen=True, slots=True)
class ChainDraft:
    """A chain as somebody wants it."""

    name: str
    dag: Mapping[str, Any]
    description: str | None = None


def _checked(parts: Parts, viewer: Viewer, wanted: ChainDraft) -> Mapping[str, Any]:
    """The DAG without sugar, held to the executors' schemas; everything that is wrong is said at once."""
    if not wanted.name.strip():
        raise InvalidInput("name: required.", field="name")
    dag: Mapping[str, Any] = expand_map_nodes(wanted.dag)
    check_dag(dag, parts.executors)
    secrets.require_use(viewer, dag)
    return dag


async def create_chain(parts: Parts, viewer: Viewer, wanted: ChainDraft, *, enabled: bool) -> ChainRow:
    """Define a chain."""
    dag = _checked(parts, viewer, wanted)
    return await parts.database.transact(
        lambda tx: definitions.create(
            tx,
            name=wanted.name.strip(),
            dag=dag,
            actor=viewer.name,
            description=wanted.description,
            enabled=enabled,
            authority=chain_run_access.authority_of(viewer),
            new_id=parts.new_id,
        )
    )


async def update_chain(parts: Parts, viewer: Viewer, chain_id: str, wanted: ChainDraft, *, version: int) -> ChainRow:
    """Change a chain; runs that have begun keep the DAG they began with."""
    dag = _checked(parts, viewer, wanted)
    return await parts.database.transact(
        lambda tx: definitions.update(
            tx,
            chain_id,
            version=version,
            name=wanted.name.strip(),
            dag=dag,
            actor=viewer.name,
            description=wanted.description,
            authority=chain_run_access.authority_of(viewer),
        )
    )


async def apply_chain(parts: Parts, viewer: Viewer, wanted: ChainFile) -> tuple[ChainApplyResult, ChainRow]:
    """Make a chain and its triggers as a file has them, all of it or nothing."""
    plain = replace(wanted, dag=expand_map_nodes(wanted.dag))
    by = apply.By(viewer.name, chain_run_access.authority_of(viewer))

    async def write(tx: Tx) -> tuple[ChainApplyResult, ChainRow]:
        check_dag(plain.dag, parts.executors)
        secrets.require_use(viewer, plain.dag)
        done = await apply.apply(tx, plain, parts.executors, TriggerCommands(parts.new_id), by=by)
        return done, await definitions.find(tx, done.chain_id)

    return await parts.database.transact(write)


async def set_chain_enabled(parts: Parts, viewer: Viewer, chain_id: str, *, enabled: bool) -> ChainRow:
    """Enable or disable a chain."""
    return await parts.database.transact(
        lambda tx: definitions.set_enabled(tx, chain_id, enabled=enabled, actor=viewer.name, reason="manual")
    )


async def find_chain(parts: Parts, chain: str) -> ChainRow:
    """A chain by its id or its name."""

    async def read(tx: Tx) -> ChainRow:
        try:
            return await definitions.find(tx, chain)
        except NotFound:
            return await definitions.find_by_name(tx, chain)

    return await parts.database.read(read)


async def list_chains(parts: Parts, *, page: int, size: int, keyword: str, enabled: bool | None) -> ChainPage:
    """A numbered page of chains."""
    return await parts.database.read(
        lambda tx: definitions.page_number(tx, page=page, size=size, keyword=keyword, enabled=enabled)
    )


# Runs.


async def start_run(
    parts: Parts,
    viewer: Viewer,
    chain: str,
    *,
    parameters: Mapping[str, Any],
    key: str | None = None,
    reason: str = "",
    trace_id: str | None = None,
) -> StartedChainRun:
    """Start a chain; the same key of theirs answers with the run it started the first time."""
    chain_id = (await find_chain(parts, chain)).id
    await parts.gate.check_room(viewer)
    wanted = NewChainRun(
        chain_id,
        parameters,
        _scoped_key(viewer, key),
        viewer.name,
        "manual",
        reason or None,
        trace_id,
        authority=chain_run_access.authority_of(viewer),
    )
    return await parts.database.transact(lambda tx: parts.engine.start(tx, wanted))


def _scoped_key(viewer: Viewer, key: str | None) -> str | None:
    """A key is its owner's: nobody's is answered with somebody else's run, nor does it stand for a trigger's tick."""
    return None if key is None else f"{viewer.id}:{key}"


async def list_runs(
    parts: Parts,
    viewer: Viewer,
    *,
    chain: str | None,
    status: ChainRunStatus | None,
    before: str | None,
    limit: int,
) -> list[ChainRunRow]:
    """Runs that the viewer may know of, the newest first."""
    chain_id = (await find_chain(parts, chain)).id if chain else ""
    return await chain_run_access.list_readable(
        parts, viewer, chain_id=chain_id, status=status, before=before, limit=limit
    )


async def get_run(parts: Parts, viewer: Viewer, run_id: str) -> ChainRunRow:
    """One run."""
    return await chain_run_access.find_readable(parts, viewer, run_id)


async def list_nodes(parts: Parts, viewer: Viewer, run_id: str) -> list[ChainNodeRow]:
    """The nodes of a run."""
    await chain_run_access.find_readable(parts, viewer, run_id)
    return await _nodes(parts, run_id)


async def _nodes(parts: Parts, run_id: str) -> list[ChainNodeRow]:
    return await parts.database.read(lambda tx: chain_queries.list_nodes(tx, run_id))


async def get_node(parts: Parts, viewer: Viewer, run_id: str, node_id: str) -> ChainNodeRow:
    """One node of a run."""
    await chain_run_access.find_readable(parts, viewer, run_id)
    return await parts.database.read(lambda tx: chain_queries.find_node(tx, run_id, node_id))


async def list_status_changes(
    parts: Parts, viewer: Viewer, run_id: str, *, after: int = 0, limit: int
) -> list[ChainStatusChange]:
    """What has become of a run and its nodes, from after a known change."""
    await chain_run_access.find_readable(parts, viewer, run_id)
    return await parts.database.read(lambda tx: chain_queries.status_log(tx, run_id, after=after, limit=limit))


async def get_dag(parts: Parts, standing: ChainRunRow) -> Mapping[str, list[str]]:
    """What each node of a run depends on, by the snapshot that the run began with."""
    dag = await parts.database.read(
        lambda tx: parts.engine.dags.of_run(tx, standing.id, standing.chain_id, standing.chain_version)
    )
    return {item.id: list(item.deps) for item in dag.nodes}


async def snapshot(parts: Parts, viewer: Viewer, run_id: str) -> Mapping[str, Any]:
    """The definition that a run goes by, as it was when the run began."""
    await chain_run_access.find_readable(parts, viewer, run_id)
    return await parts.database.read(lambda tx: chain_queries.snapshot(tx, run_id))


async def get_artifact(parts: Parts, viewer: Viewer, run_id: str, node_id: str) -> bytes:
    """What a node left behind as JSON, however large; of a mapped node, the list of what its instances did."""
    run, found = (
        await chain_run_access.find_readable(parts, viewer, run_id),
        await get_node(parts, viewer, run_id, node_id),
    )
    if found.artifact is not None:
        return json.dumps(found.artifact, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    if found.artifact_digest is not None:
        return await artifacts.load_artifact(Artifact(None, found.artifact_digest), parts.blobs)

    async def gather(tx: Tx) -> list[Artifact] | None:
        dag = await parts.engine.dags.of_run(tx, run_id, run.chain_id, run.chain_version)
        if node_id not in dag.by_id or dag.by_id[node_id].map_spec is None:
            return None
        left = (await chain_queries.find_artifacts(tx, run_id, (), (node_id,))).get(node_id)
        return left if isinstance(left, list) else None

    items = await parts.database.read(gather)
    if items is None:
        return b"null"
    if sum(item.size_bytes for item in items) > artifacts.ARTIFACT_BYTES_MAX:
        raise InvalidInput(
            "artifact: too large in total; download the instances' artifacts separately.", node_id=node_id
        )
    return b"[" + b",".join([await artifacts.load_artifact(item, parts.blobs) for item in items]) + b"]"


async def stop_run(parts: Parts, viewer: Viewer, run_id: str, reason: str) -> ChainRunStatus:
    """Ask a run to stop."""
    await chain_run_access.find_controllable(parts, viewer, run_id)
    return await parts.database.transact(lambda tx: parts.engine.stop(tx, run_id, actor=viewer.name, reason=reason))


async def retry_node(parts: Parts, viewer: Viewer, run_id: str, node_id: str, reason: str) -> ChainNodeRow:
    """Run a node again."""
    await chain_run_access.find_controllable(parts, viewer, run_id)
    return await parts.database.transact(
        lambda tx: parts.engine.retry(tx, run_id, node_id, actor=viewer.name, reason=reason)
    )


async def complete_node(
    parts: Parts, viewer: Viewer, run_id: str, node_id: str, *, artifact: Any, reason: str
) -> ChainNodeRow:
    """Declare a node done. A question is answered by those it was asked; to pass over them is for admins of chains."""
    await chain_run_access.find_controllable(parts, viewer, run_id)
    chain_run_access.require_completion(viewer, await get_node(parts, viewer, run_id, node_id))
    left = await artifacts.store_artifact(artifact, parts.blobs)
    return await parts.database.transact(
        lambda tx: parts.engine.complete(tx, run_id, node_id, actor=viewer.name, artifact=left, reason=reason)
    )


async def rerun(
    parts: Parts, viewer: Viewer, run_id: str, *, from_node: str | None, reason: str, key: str | None
) -> StartedChainRun:
    """Repeat a run, for the viewer."""
    await chain_run_access.find_controllable(parts, viewer, run_id)
    return await parts.database.transact(
        lambda tx: parts.engine.rerun(
            tx,
            run_id,
            actor=viewer.name,
            reason=reason,
            from_node=from_node,
            idempotency_key=_scoped_key(viewer, key),
            authority=chain_run_access.authority_of(viewer),
        )
    )


async def decide_node(parts: Parts, viewer: Viewer, run_id: str, node_id: str, *, approved: bool, reason: str) -> None:
    """Answer the question that a node asks: those it names may, or else those who may change its run."""
    run, asking = (
        await chain_run_access.find_readable(parts, viewer, run_id),
        await get_node(parts, viewer, run_id, node_id),
    )
    if not viewer.can(Permission.RUN_CONTROL):
        viewer.require(Permission.RUN_ANSWER)  # a token that may only read changes nothing
    if asking.wait_on == WAIT_APPROVAL:  # else the engine says what is wrong: it is answered already
        chain_run_access.require_approver(viewer, run, asking)
    await parts.database.transact(
        lambda tx: answer_approval(
            tx,
            parts.engine.resume,
            run_id=run_id,
            node_id=node_id,
            approved=approved,
            actor=viewer.name,
            reason=reason,
            actor_names=(viewer.id,),
        )
    )


# Triggers.


async def list_triggers(parts: Parts, chain: str) -> list[TriggerRow]:
    """The triggers of a chain."""
    chain_id = (await find_chain(parts, chain)).id
    return await parts.database.read(lambda tx: chain_triggers.list_by_chain(tx, chain_id))


async def create_trigger(
    parts: Parts, viewer: Viewer, chain: str, *, name: str, kind: str, spec: Mapping[str, Any], enabled: bool
) -> tuple[TriggerRow, str | None]:
    """Let a chain be started by itself; a webhook's secret is shown this once."""
    chain_id = (await find_chain(parts, chain)).id

    async def write(tx: Tx) -> tuple[TriggerRow, CreatedTrigger]:
        made = await TriggerCommands(parts.new_id).create(
            tx,
            chain_id=chain_id,
            name=name,
            kind=kind,
            spec=spec,
            actor=viewer.name,
            authority=chain_run_access.authority_of(viewer),
            enabled=enabled,
        )
        details = {chain_id: {"trigger": made.trigger_id, "kind": kind}}
        await audit_log.record(
            tx, actor=viewer.name, action="trigger.create", object_kind="chain", objects=details, reason=""
        )
        return await chain_triggers.find(tx, made.trigger_id), made

    trigger, made = await parts.database.transact(write)
    return trigger, made.secret


async def update_trigger(
    parts: Parts,
    viewer: Viewer,
    trigger_id: str,
    *,
    version: int,
    spec: Mapping[str, Any] | None,
    enabled: bool | None,
) -> TriggerRow:
    """Change a trigger by version."""

    async def write(tx: Tx) -> TriggerRow:
        changed = await TriggerCommands(parts.new_id).update(
            tx,
            trigger_id,
            version=version,
            spec=spec,
            enabled=enabled,
            authority=chain_run_access.authority_of(viewer),
        )
        await audit_log.record(
            tx,
            actor=viewer.name,
            action="trigger.update",
            object_kind="chain",
            objects={changed.chain_id: {"trigger": trigger_id}},
            reason="",
        )
        return changed

    return await parts.database.transact(write)


async def delete_trigger(parts: Parts, viewer: Viewer, trigger_id: str) -> None:
    """Let a trigger start nothing any more."""

    async def write(tx: Tx) -> None:
        standing = await chain_triggers.find(tx, trigger_id)
        await chain_triggers.delete(tx, trigger_id)
        await audit_log.record(
            tx,
            actor=viewer.name,
            action="trigger.remove",
            object_kind="chain",
            objects={standing.chain_id: {"trigger": trigger_id}},
            reason="",
        )

    await parts.database.transact(write)


async def call_trigger(parts: Parts, trigger_id: str, *, secret: str, key: str | None, payload: Any) -> str:
    """Take the call of whoever knows a trigger's secret."""
    if not isinstance(payload, Mapping):
        raise InvalidInput("body: expected a JSON object.", field="body")
    return await parts.database.transact(
        lambda tx: TriggerCommands(parts.new_id).handle_webhook_call(
            tx, trigger_id, secret=secret, key=key, payload=payload
        )
    )


# Watching.


async def watch_run(
    parts: Parts, viewer: Viewer, run_id: str
) -> AsyncGenerator[tuple[ChainRunRow, list[ChainNodeRow]] | None, None]:
    """A run and the nodes that changed, whenever something did, until it ends; nothing as a sign of life.

    What is sent is the state, not its history: whoever comes back is told how everything stands, so nothing is missed.
    """
    seen: dict[str, tuple[object, ...]] = {}
    last: object = None
    wakeup = Wakeup()
    stop_listening = parts.database.listen(chain_queries.CHANGED, wakeup.set)
    try:
        while True:
            wakeup.clear()
            standing, found = await get_run(parts, viewer, run_id), await _nodes(parts, run_id)
            changed = [item for item in found if seen.get(item.node_id) != _mark(item)]
            seen.update((item.node_id, _mark(item)) for item in changed)
            if changed or standing != last:
                last = standing
                yield standing, changed
            else:
                yield None
            if standing.status in CHAIN_RUN.terminal:
                return
            await asyncio.sleep(_REST_SEC)
            await wakeup.wait(_POLL_MS)
    finally:
        stop_listening()


def _mark(node: ChainNodeRow) -> tuple[object, ...]:
    return node.status, node.attempt, node.updated_at, node.waiting_on, node.wait_on


async def list_log_lines(
    parts: Parts, viewer: Viewer, run_id: str, node_id: str, *, after: int, limit: int
) -> list[NodeLogRow]:
    """What a node wrote, from after a known line."""
    await get_node(parts, viewer, run_id, node_id)
    return await parts.database.read(lambda tx: chain_queries.read_log(tx, run_id, node_id, after=after, limit=limit))


async def tail_log_lines(parts: Parts, viewer: Viewer, run_id: str, node_id: str, *, limit: int) -> list[NodeLogRow]:
    """What a node wrote last."""
    await get_node(parts, viewer, run_id, node_id)
    return await parts.database.read(lambda tx: chain_queries.read_log_tail(tx, run_id, node_id, limit=limit))
