"""The inputs of nodes: from the cache of the worker, or read for many nodes at once.

Only data that cannot change is cached: the parameters of runs and the artifacts of successful nodes. The nodes of a
line need no read: a worker has cached the run with its first node, and each artifact when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from adjudge.chains.dag_cache import DagCache
from adjudge.concurrency.batcher import Batcher
from adjudge.domain.chain import Dag, Node, is_instance
from adjudge.domain.errors import AdjudgeError, NotFound
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store import Database, Tx
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import Artifact, NodeDone, NodeTask, node_attempt
from adjudge.store.jobs.models import Job, JobResult

_RUNS: Final = 256
_ARTIFACTS: Final = 4_096
_ARTIFACT_CHARACTERS: Final = 4_096
"""Larger artifacts are not cached."""
_READ_TOGETHER: Final = 256

Key = tuple[str, str]
"""A run and one of its nodes."""
Stored = Mapping[str, Artifact | list[Artifact]]


@dataclass(frozen=True, slots=True)
class NodeInput:
    """What the rows say about a node that is to run."""

    task: NodeTask
    node: Node
    stored: Stored
    """The artifacts of its dependencies; those of a mapped node as a list."""


class NodeInputs:
    """Reads and caches the inputs of nodes, for one worker."""

    def __init__(self, database: Database, dags: DagCache) -> None:
        self._database = database
        self._dags = dags
        self._runs: LRUCache[str, NodeTask] = LRUCache(_RUNS)
        self._artifacts: LRUCache[Key, Artifact] = LRUCache(_ARTIFACTS)
        self._batcher: Batcher[Key, NodeInput | None] = Batcher(
            self._read, name="node-inputs", max_weight=_READ_TOGETHER
        )

    async def get(self, job: Job) -> NodeInput:
        """The inputs of the node of a job. Only a first attempt may use the cache: later ones may have a checkpoint."""
        key = (job.chain_run_id or "", job.node_id or "")
        found = self._cached(job, key) if node_attempt(job) == 1 else None
        if found is None:
            found = await self._batcher.put(key)
        if found is None:
            raise NotFound("node", "/".join(key))
        return found

    def committed(self, results: Sequence[JobResult]) -> None:
        """Cache the artifacts of nodes that succeeded."""
        for result in results:
            if isinstance(result.typed_result, NodeDone) and (job := result.job) is not None:
                self._keep((job.chain_run_id or "", job.node_id or ""), result.typed_result.artifact)

    def _keep(self, key: Key, artifact: Artifact) -> None:
        if len(artifact.text or "") <= _ARTIFACT_CHARACTERS:
            self._artifacts[key] = artifact

    def _cached(self, job: Job, key: Key) -> NodeInput | None:
        run_id, node_id = key
        run = self._runs.get(run_id)
        dag = None if run is None else self._dags.get(run.chain_id, run.chain_version)
        if run is None or dag is None or is_instance(node_id):  # the item of an instance is in its row
            return None
        node = dag.node_for(node_id)
        stored = {dep: self._artifacts.get((run_id, dep)) for dep in node.deps}
        known = {dep: artifact for dep, artifact in stored.items() if artifact is not None}
        if len(known) < len(stored) or _mapped(dag, node):
            return None
        task = run._replace(
            status=NodeStatus.RUNNING,
            type=node.type,
            job_id=job.id,
            attempt=1,
            item=None,
            is_instance=False,
            run_status=ChainRunStatus.RUNNING,
            checkpoint=None,
        )
        return NodeInput(task, node, known)

    async def _read(self, keys: Sequence[Key]) -> list[NodeInput | None]:
        found, artifacts = await self._database.read(lambda tx: self._read_rows(tx, set(keys)))
        for key, item in found.items():
            self._runs[key[0]] = item.task
        for key, artifact in artifacts.items():
            self._keep(key, artifact)
        return [found.get(key) for key in keys]

    async def _read_rows(self, tx: Tx, keys: set[Key]) -> tuple[dict[Key, NodeInput], dict[Key, Artifact]]:
        """Read the inputs of nodes, with two statements for all of them, and more for those that join mapped nodes.

        A node with a missing input is left out; only that node fails.
        """
        tasks = await chain_queries.find_node_tasks(tx, keys)
        dags, nodes = dict[str, Dag](), dict[Key, Node]()
        for key, task in tasks.items():
            with suppress(AdjudgeError):
                dags[key[0]] = await self._dags.load(tx, task.chain_id, task.chain_version)
                nodes[key] = dags[key[0]].node_for(key[1])
        plain = {key: node for key, node in nodes.items() if not _mapped(dags[key[0]], node)}
        artifacts = await chain_queries.find_artifacts_by_node(
            tx, ((key[0], dep) for key, node in plain.items() for dep in node.deps)
        )
        stored: dict[Key, Stored] = {
            key: {dep: artifacts[key[0], dep] for dep in node.deps if (key[0], dep) in artifacts}
            for key, node in plain.items()
        }
        for key, node in nodes.items():
            if key not in plain:
                mapped = _mapped(dags[key[0]], node)
                stored[key] = await chain_queries.find_artifacts(tx, key[0], set(node.deps) - mapped, mapped)
        return {key: NodeInput(tasks[key], node, stored[key]) for key, node in nodes.items()}, artifacts


def _mapped(dag: Dag, node: Node) -> set[str]:
    return {dep for dep in node.deps if dag.by_id[dep].map_spec is not None}
