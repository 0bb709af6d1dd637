"""Handler of node jobs: runs the executor of a chain node.

It reads the inputs of the node, renders its cfg and runs the executor within the timeout of the node. The chain engine
writes the result in the transaction that finishes the job. Exceptions of the executor are not caught here: the worker
classifies them, and the attempts of the job are the retries of the node.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.blobs.driver import BlobStore
from adjudge.chains import artifacts
from adjudge.chains.conditions import find_blob_dependency
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.executor import Executor, NodeResult, NodeWaiting, StopSignal
from adjudge.chains.rights import rights_of
from adjudge.chains.secrets import SECRETS, Keyring, Redaction, names_in, refuse_missing
from adjudge.chains.templating import render
from adjudge.chains.validation import check_rendered
from adjudge.domain.authority import Authority
from adjudge.domain.chain import DependencyRule, Node, is_instance
from adjudge.domain.chain_condition import Condition
from adjudge.domain.errors import Conflict, InvalidInput, NodeFailed
from adjudge.domain.permissions import Permission
from adjudge.domain.states import CHAIN_RUN, ChainRunStatus
from adjudge.observe import metrics
from adjudge.observe.logs import context as log_context
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains import secrets
from adjudge.store.chains.models import (
    Artifact,
    NodeDone,
    NodeExpanded,
    NodeStopped,
    NodeSuspended,
    NodeTask,
    node_attempt,
)
from adjudge.store.jobs.models import Fence, Job
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.node_inputs import NodeInputs, Stored
from adjudge.worker.handlers.stop_watcher import ChainRunStopWatcher

MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the latest time that RFC 3339 can express."""
INSTANCES_MAX: Final = 10_000
LOG_LINE_CHARACTERS: Final = 16_384
_NOTHING_HIDDEN: Final = Redaction()

_log = get_logger(__name__)


@dataclass(frozen=True)
class ExecutorContext:
    """What an executor receives: ``chains.executor.NodeContext``."""

    run_id: str
    chain_id: str
    chain_name: str
    node_id: str
    attempt: int
    cfg: Mapping[str, Any]
    parameters: Mapping[str, Any]
    artifacts: Mapping[str, Any]
    checkpoint: Any
    actor: str
    authority: Authority | None
    trace_id: str | None
    stop_requested: StopSignal
    _database: Database
    _fence: Fence
    _hidden: Redaction

    async def save_checkpoint(self, document: Any) -> None:
        """Keep ``document`` for the next attempt."""
        await self._database.transact(
            lambda tx: chain_commands.save_checkpoint(
                tx, self._fence, attempt=self.attempt, document=self._hidden.document(document)
            )
        )

    async def log(self, text: str) -> None:
        """Add lines to the node's log."""
        lines = [line[:LOG_LINE_CHARACTERS].replace("\0", "�") for line in self._hidden.text(text).splitlines()]
        await self._database.transact(
            lambda tx: chain_commands.append_log(tx, self.run_id, self.node_id, attempt=self.attempt, lines=lines)
        )


@dataclass(frozen=True, slots=True)
class _NodeExecution:
    """A node with all its inputs."""

    job: Job
    run_id: str
    node_id: str
    task: NodeTask
    node: Node
    scope: Mapping[str, Any]
    stored: Stored


class NodeHandler:
    """Runs jobs of kind ``node``."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        executors: Mapping[str, Executor],
        dags: DagCache | None = None,
        *,
        inline_bytes: int = artifacts.INLINE_BYTES,
        keyring: Keyring | None = None,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._executors = executors
        self._inline_bytes = inline_bytes
        self._keyring = keyring
        self._stops = ChainRunStopWatcher(database)
        self._inputs = NodeInputs(database, dags or DagCache())
        self.committed = self._inputs.committed

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The limit key of the node's type: ``node:sandbox=2``."""
        return (f"node:{job_payload.get('type')}",)

    def is_instant(self, job_payload: Mapping[str, Any]) -> bool:
        """Whether the executor of the node's type declares it."""
        return bool(getattr(self._executors.get(str(job_payload.get("type"))), "is_instant", False))

    async def run(self, job: Job) -> HandlerResult:
        if job.chain_run_id is None or job.node_id is None:
            raise InvalidInput(f"Job {job.id!r} names no node.", field="node_id")
        metrics.CHAIN_NODES_INFLIGHT.inc()
        try:
            with log_context(run_id=job.chain_run_id, node_id=job.node_id, node_attempt=node_attempt(job)):
                outcome = await self._outcome(job, job.chain_run_id, job.node_id)
                return HandlerResult(typed_result=outcome)
        finally:
            metrics.CHAIN_NODES_INFLIGHT.dec()

    async def _outcome(self, job: Job, run_id: str, node_id: str) -> object:
        inputs = await self._inputs.get(job)
        task, node, stored = inputs.task, inputs.node, inputs.stored
        if task.job_id != job.id or task.attempt != node_attempt(job):  # a late read of a worker whose lease was lost
            raise Conflict(f"Node {node_id!r} of run {run_id}: this attempt is stale.")
        if task.run_status is ChainRunStatus.STOPPING or task.run_status in CHAIN_RUN.terminal:
            return NodeStopped("the run is to stop")
        scope = {
            "parameters": task.parameters,
            "artifacts": {key: await self._loaded(value) for key, value in stored.items()},
            "run": {"id": run_id, "chain": task.chain_name, "node": node_id, "started_by": task.started_by},
        }
        work = _NodeExecution(job, run_id, node_id, task, node, scope, stored)
        if node.map_spec is not None and not is_instance(node_id):
            return _expanded(work)
        return await self._executed(work)

    async def _loaded(self, value: Artifact | list[Artifact]) -> Any:
        """An artifact as JSON, from its row or its blob."""
        if isinstance(value, list):
            return [await self._loaded(item) for item in value]
        if value.digest is None:
            return None if value.text is None else json.loads(value.text)
        return json.loads(await artifacts.load_artifact(value, self._blobs))

    async def _executed(self, work: _NodeExecution) -> object:
        node, task = work.node, work.task
        if node.condition is not None and node.when is not DependencyRule.ALWAYS:
            _refuse_false(node.condition, work)
        executor = self._executors.get(node.type)
        if executor is None:
            raise NodeFailed(f"This worker has no executor for nodes of type {node.type!r}; install or enable it.")
        if getattr(executor, "permissions", ()):
            rights = await self._database.read(lambda tx: rights_of(tx, task.authority))
            rights.require_type(node.type, executor)
        item = {node.map_spec.item: task.item} if node.map_spec is not None else {}
        given = await self._secrets(work) if getattr(executor, "secret_fields", ()) else {}
        hidden = Redaction(tuple(given.values())) if given else _NOTHING_HIDDEN
        try:
            cfg = render(dict(node.cfg), {**work.scope, **item, SECRETS: given})
            check_rendered(executor.cfg_schema, node.cfg, cfg)
            return await self._done(work, executor, cfg, hidden)
        except Exception as error:
            if not given:
                raise
            raise hidden.error(error) from None  # neither the message nor the cause may contain a secret

    async def _secrets(self, work: _NodeExecution) -> dict[str, str]:
        """The secrets that a node refers to; the authority of the run must be allowed to use them."""
        names = names_in(dict(work.node.cfg))
        if not names:
            return {}
        if self._keyring is None:
            raise NodeFailed("This worker has no key of secrets.")
        rights = await self._database.read(lambda tx: rights_of(tx, work.task.authority))
        rights.require(Permission.SECRET_USE, "use secrets")
        found = await self._database.read(lambda tx: secrets.read(tx, names))
        refuse_missing(names, found)
        return {name: self._keyring.decrypt(name, text) for name, text in found.items()}

    async def _done(
        self, work: _NodeExecution, executor: Executor, cfg: Mapping[str, Any], hidden: Redaction
    ) -> object:
        node = work.node
        with self._stops.watch_run(work.run_id) as stop:
            context = self._context(work, cfg, stop, hidden)
            try:
                result = await _until_stopped(executor, context, _within(node.timeout_ms, executor, context), stop)
                if result is None:
                    return NodeStopped("stopped at once")
            except Exception as error:  # after any error, a node that ends because its run stops has not failed
                if not stop.is_set():
                    raise
                _log.info("node_stopped", error=hidden.text(repr(error)))
                return NodeStopped(f"stopped: {type(error).__name__}")
        if hidden is not _NOTHING_HIDDEN:
            result = replace(result, artifact=hidden.document(result.artifact))
        return await self._kept(node, result)

    def _context(
        self, work: _NodeExecution, cfg: Mapping[str, Any], stop: asyncio.Event, hidden: Redaction
    ) -> ExecutorContext:
        task, job = work.task, work.job
        return ExecutorContext(
            work.run_id,
            task.chain_id,
            task.chain_name,
            work.node_id,
            task.attempt,
            cfg,
            task.parameters,
            work.scope["artifacts"],
            task.checkpoint,
            task.started_by,
            task.authority,
            task.trace_id,
            stop,
            self._database,
            Fence(job.id, job.attempt_id, job.actor or ""),
            hidden,
        )

    async def _kept(self, node: Node, result: NodeResult | NodeWaiting) -> object:
        if isinstance(result, NodeWaiting):
            artifact = await artifacts.store_artifact(result.artifact, self._blobs, self._inline_bytes)
            if artifact.digest is not None:  # the approvers are read from the row
                raise InvalidInput(
                    f"artifact: a node waits with at most {self._inline_bytes} bytes, these are "
                    f"{artifact.size_bytes}; shorten what is shown meanwhile, or name a blob.",
                    field="artifact",
                )
            if result.until_ms is not None and not 0 <= result.until_ms <= MAX_TIMESTAMP_MS:
                raise InvalidInput(f"until_ms: {result.until_ms} is beyond the year 9999.", field="until_ms")
            return NodeSuspended(result.wait_kind, result.wait_key, artifact, result.until_ms, node.timeout_ms)
        return NodeDone(await artifacts.store_artifact(result.artifact, self._blobs, self._inline_bytes))


async def _until_stopped(
    executor: Executor,
    context: ExecutorContext,
    work: Coroutine[Any, Any, NodeResult | NodeWaiting],
    stop: asyncio.Event,
) -> NodeResult | NodeWaiting | None:
    """Run the executor; not if the run is stopping and the executor loses nothing when interrupted."""
    if not getattr(executor, "can_be_killed", False):
        return await work
    doing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return await doing
        await context.log("stopped: the run is to stop")
        return None
    finally:
        for task in (doing, stopping):
            task.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)


def _refuse_false(condition: Condition, work: _NodeExecution) -> None:
    """Evaluate a condition that could not be evaluated before the node started; fails with the reason."""
    holds, dep = condition.evaluate(work.scope), find_blob_dependency(condition, work.stored)
    if not holds and dep is not None:
        raise InvalidInput(
            f"if: {condition.text} is false. It was evaluated late because the artifact of "
            f"{dep!r} is too large to be stored inline; with an inline artifact the node is "
            "skipped.",
            field="if",
        )


async def _within(timeout_ms: int | None, executor: Executor, context: ExecutorContext) -> NodeResult | NodeWaiting:
    """Execute within the timeout of the node; a timeout is a failure that is retried.

    A node without a timeout is ended by that of its job, which every job has.
    """
    if timeout_ms is None:
        return await executor.execute(context)
    limit = asyncio.timeout(timeout_ms / 1_000)
    try:
        async with limit:
            return await executor.execute(context)
    except TimeoutError as error:
        if limit.expired():
            raise NodeFailed(f"Timed out after {timeout_ms} ms.") from error
        raise


def _expanded(work: _NodeExecution) -> NodeExpanded:
    fan = work.node.map_spec
    items = render(fan.over if fan is not None else [], work.scope, "map.over")
    if not isinstance(items, list):
        raise InvalidInput(f"map.over: must evaluate to a list, not {type(items).__name__}.", field="map.over")
    if len(items) > INSTANCES_MAX:
        raise InvalidInput(f"map.over: {len(items)} items are more than {INSTANCES_MAX}.", field="map.over")
    return NodeExpanded(tuple(items))
