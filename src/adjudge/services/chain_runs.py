"""Chain runs: start, read, watch, control."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adjudge.blobs.driver import BlobStore
from adjudge.chains import artifacts
from adjudge.chains.approval import WAIT_APPROVAL, answer_approval
from adjudge.chains.engine import ChainEngine
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import CHAIN_RUN, ChainRunStatus
from adjudge.services import chain_run_access
from adjudge.services.admission import AdmissionController
from adjudge.services.chains import ChainService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import (
    Artifact,
    ChainNodeRow,
    ChainRunRow,
    ChainStatusChange,
    NewChainRun,
    NodeLogRow,
    StartedChainRun,
)
from adjudge.store.engine.notify import Wakeup

_POLL_MS: Final = 1_000
_PAUSE_SEC: Final = 0.1
"""Pause between two reads of a run: notifications come for every run, and a read returns all nodes of one."""


@dataclass(frozen=True, slots=True)
class ChainRunService:
    """Chain runs and their nodes: start, read, control."""

    database: Database
    engine: ChainEngine
    blobs: BlobStore
    admission: AdmissionController
    chains: ChainService

    async def start_run(
        self,
        viewer: Viewer,
        chain: str,
        *,
        parameters: Mapping[str, Any],
        key: str | None = None,
        reason: str = "",
        trace_id: str | None = None,
    ) -> StartedChainRun:
        """Start a chain; a repeated idempotency key of the same user returns the first run."""
        chain_id = (await self.chains.find_chain(chain)).id
        await self.admission.check_capacity(viewer)
        wanted = NewChainRun(
            chain_id,
            parameters,
            _scoped_key(viewer, key),
            viewer.id,
            "manual",
            reason or None,
            trace_id,
            authority=chain_run_access.authority_of(viewer),
        )
        return await self.database.transact(lambda tx: self.engine.start(tx, wanted))

    async def list_runs(
        self,
        viewer: Viewer,
        *,
        chain: str | None,
        status: ChainRunStatus | None,
        before: str | None,
        limit: int,
    ) -> list[ChainRunRow]:
        """Runs that the viewer may see, newest first."""
        chain_id = (await self.chains.find_chain(chain)).id if chain else ""
        return await chain_run_access.list_readable(
            self.database, viewer, chain_id=chain_id, status=status, before=before, limit=limit
        )

    async def get_run(self, viewer: Viewer, run_id: str) -> ChainRunRow:
        return await chain_run_access.find_readable(self.database, viewer, run_id)

    async def get_run_by_number(self, viewer: Viewer, chain: str, number: int) -> ChainRunRow:
        """The run of a chain with a number; one that the viewer may not see is not found."""
        chain_id = (await self.chains.find_chain(chain)).id
        run_id = await self.database.read(lambda tx: chain_queries.find_run_id(tx, chain_id, number))
        try:
            return await chain_run_access.find_readable(self.database, viewer, run_id or "")
        except NotFound:
            raise NotFound("run", f"{chain}#{number}") from None

    async def list_nodes(self, viewer: Viewer, run_id: str) -> list[ChainNodeRow]:
        await chain_run_access.find_readable(self.database, viewer, run_id)
        return await self._nodes(run_id)

    async def _nodes(self, run_id: str) -> list[ChainNodeRow]:
        return await self.database.read(lambda tx: chain_queries.list_nodes(tx, run_id))

    async def get_node(self, viewer: Viewer, run_id: str, node_id: str) -> ChainNodeRow:
        await chain_run_access.find_readable(self.database, viewer, run_id)
        return await self.database.read(lambda tx: chain_queries.find_node(tx, run_id, node_id))

    async def list_status_changes(
        self, viewer: Viewer, run_id: str, *, after: int = 0, limit: int
    ) -> list[ChainStatusChange]:
        """Status changes of a run and its nodes, after a given change."""
        await chain_run_access.find_readable(self.database, viewer, run_id)
        return await self.database.read(lambda tx: chain_queries.status_log(tx, run_id, after=after, limit=limit))

    async def get_dag(self, run: ChainRunRow) -> Mapping[str, list[str]]:
        """The dependencies of each node of a run, from the run's snapshot of the DAG."""
        dag = await self.database.read(lambda tx: self.engine.dags.load(tx, run.chain_id, run.chain_version))
        return {item.id: list(item.deps) for item in dag.nodes}

    async def snapshot(self, viewer: Viewer, run_id: str) -> Mapping[str, Any]:
        """The definition that a run uses: a snapshot from its start."""
        await chain_run_access.find_readable(self.database, viewer, run_id)
        return await self.database.read(lambda tx: chain_queries.snapshot(tx, run_id))

    async def get_artifact(self, viewer: Viewer, run_id: str, node_id: str) -> bytes:
        """The whole artifact of a node; for a mapped node, the list of the artifacts of its instances."""
        run, found = (
            await chain_run_access.find_readable(self.database, viewer, run_id),
            await self.get_node(viewer, run_id, node_id),
        )
        if found.artifact is not None:
            return json.dumps(found.artifact, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        if found.artifact_digest is not None:
            return await artifacts.load_artifact(Artifact(None, found.artifact_digest), self.blobs)

        async def gather(tx: Tx) -> list[Artifact] | None:
            dag = await self.engine.dags.load(tx, run.chain_id, run.chain_version)
            if node_id not in dag.by_id or dag.by_id[node_id].map_spec is None:
                return None
            left = (await chain_queries.find_artifacts(tx, run_id, (), (node_id,))).get(node_id)
            return left if isinstance(left, list) else None

        items = await self.database.read(gather)
        if items is None:
            return b"null"
        if sum(item.size_bytes for item in items) > artifacts.ARTIFACT_BYTES_MAX:
            raise InvalidInput(
                "artifact: too large in total; download the instances' artifacts separately.", node_id=node_id
            )
        return b"[" + b",".join([await artifacts.load_artifact(item, self.blobs) for item in items]) + b"]"

    async def stop_run(self, viewer: Viewer, run_id: str, reason: str) -> ChainRunStatus:
        await chain_run_access.find_controllable(self.database, viewer, run_id)
        return await self.database.transact(lambda tx: self.engine.stop(tx, run_id, actor=viewer.id, reason=reason))

    async def retry_node(self, viewer: Viewer, run_id: str, node_id: str, reason: str) -> ChainNodeRow:
        """Run a node again."""
        await chain_run_access.find_controllable(self.database, viewer, run_id)
        return await self.database.transact(
            lambda tx: self.engine.retry(tx, run_id, node_id, actor=viewer.id, reason=reason)
        )

    async def complete_node(
        self, viewer: Viewer, run_id: str, node_id: str, *, artifact: Any, reason: str
    ) -> ChainNodeRow:
        """Mark a node as success. For a node that waits for approval this requires the permission to change chains."""
        await chain_run_access.find_controllable(self.database, viewer, run_id)
        chain_run_access.require_completion(viewer, await self.get_node(viewer, run_id, node_id))
        left = await artifacts.store_artifact(artifact, self.blobs)
        return await self.database.transact(
            lambda tx: self.engine.complete(tx, run_id, node_id, actor=viewer.id, artifact=left, reason=reason)
        )

    async def rerun(
        self, viewer: Viewer, run_id: str, *, from_node: str | None, reason: str, key: str | None
    ) -> StartedChainRun:
        """Rerun a run on behalf of the viewer."""
        await chain_run_access.find_controllable(self.database, viewer, run_id)
        return await self.database.transact(
            lambda tx: self.engine.rerun(
                tx,
                run_id,
                actor=viewer.id,
                reason=reason,
                from_node=from_node,
                idempotency_key=_scoped_key(viewer, key),
                authority=chain_run_access.authority_of(viewer),
            )
        )

    async def decide_node(self, viewer: Viewer, run_id: str, node_id: str, *, approved: bool, reason: str) -> None:
        """Approve or reject a node: its approvers may, or else users who may change its run."""
        run, asking = (
            await chain_run_access.find_readable(self.database, viewer, run_id),
            await self.get_node(viewer, run_id, node_id),
        )
        if not viewer.can(Permission.RUN_CONTROL):
            viewer.require(Permission.RUN_ANSWER)  # a read-only token must not change anything
        if asking.wait_on == WAIT_APPROVAL:  # otherwise the engine reports the error: the node is already decided
            chain_run_access.require_approver(viewer, run, asking)
        await self.database.transact(
            lambda tx: answer_approval(
                tx,
                self.engine.resume,
                run_id=run_id,
                node_id=node_id,
                approved=approved,
                actor=viewer.id,
                reason=reason,
                actor_name=viewer.name,
            )
        )

    async def watch_run(
        self, viewer: Viewer, run_id: str
    ) -> AsyncGenerator[tuple[ChainRunRow, list[ChainNodeRow]] | None, None]:
        """The run and its changed nodes, after every change until it finishes; None as a heartbeat.

        The state is sent, not its history: a client that reconnects gets the whole state and misses nothing.
        """
        seen: dict[str, tuple[object, ...]] = {}
        last: object = None
        wakeup = Wakeup()
        stop_listening = self.database.listen(chain_queries.CHANGED, wakeup.set)
        try:
            while True:
                wakeup.clear()
                run, found = await self.get_run(viewer, run_id), await self._nodes(run_id)
                changed = [item for item in found if seen.get(item.node_id) != _mark(item)]
                seen.update((item.node_id, _mark(item)) for item in changed)
                if changed or run != last:
                    last = run
                    yield run, changed
                else:
                    yield None
                if run.status in CHAIN_RUN.terminal:
                    return
                await asyncio.sleep(_PAUSE_SEC)
                await wakeup.wait(_POLL_MS)
        finally:
            stop_listening()

    async def list_log_lines(
        self, viewer: Viewer, run_id: str, node_id: str, *, after: int, limit: int
    ) -> list[NodeLogRow]:
        """The log lines of a node, after a given line."""
        await self.get_node(viewer, run_id, node_id)
        return await self.database.read(
            lambda tx: chain_queries.read_log(tx, run_id, node_id, after=after, limit=limit)
        )

    async def tail_log_lines(self, viewer: Viewer, run_id: str, node_id: str, *, limit: int) -> list[NodeLogRow]:
        """The last log lines of a node."""
        await self.get_node(viewer, run_id, node_id)
        return await self.database.read(lambda tx: chain_queries.read_log_tail(tx, run_id, node_id, limit=limit))


def _scoped_key(viewer: Viewer, key: str | None) -> str | None:
    """Limit an idempotency key to its user, so that it never matches a run of another user or a tick of a trigger."""
    return None if key is None else f"{viewer.id}:{key}"


def _mark(node: ChainNodeRow) -> tuple[object, ...]:
    return node.status, node.attempt, node.updated_at, node.waiting_on, node.wait_on
