"""Caches inputs of nodes in the worker, so that follow-up nodes need no read. Only immutable data is cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeVar

from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store.chains.models import Artifact, NodeTask

Key = tuple[str, str]
"""A run and one of its nodes."""
K = TypeVar("K")
V = TypeVar("V")

_RUNS: Final = 256
_ARTIFACTS: Final = 4_096
_ARTIFACT_CHARACTERS: Final = 4_096


class Memory:
    """The parameters of runs and the artifacts of successful nodes; neither can change."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, NodeTask] = OrderedDict()
        self._artifacts: OrderedDict[Key, Artifact] = OrderedDict()

    def keep_run(self, run_id: str, task: NodeTask) -> None:
        """Store the parameters of a run, from the task of one of its nodes."""
        _keep(self._runs, run_id, task, _RUNS)

    def keep_artifact(self, key: Key, artifact: Artifact) -> None:
        """Store the artifact of a successful node; large ones are not cached."""
        if len(artifact.text or "") <= _ARTIFACT_CHARACTERS:
            _keep(self._artifacts, key, artifact, _ARTIFACTS)

    def artifacts(self, run_id: str, node_ids: Sequence[str]) -> dict[str, Artifact] | None:
        """The artifacts of all these nodes, or None if one of them is not cached."""
        found = {node_id: self._artifacts.get((run_id, node_id)) for node_id in node_ids}
        known = {node_id: artifact for node_id, artifact in found.items() if artifact is not None}
        return known if len(known) == len(found) else None

    def first_task(self, run_id: str, type_name: str, job_id: str) -> NodeTask | None:
        """The task of a node that runs for the first time, in a run that is not stopping."""
        known = self._runs.get(run_id)
        if known is None:
            return None
        self._runs.move_to_end(run_id)
        return known._replace(
            status=NodeStatus.RUNNING,
            type=type_name,
            job_id=job_id,
            attempt=1,
            item=None,
            is_instance=False,
            run_status=ChainRunStatus.RUNNING,
            checkpoint=None,
        )


def _keep(kept: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    kept[key] = value
    if len(kept) > limit:
        kept.popitem(last=False)
