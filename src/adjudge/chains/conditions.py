"""Evaluates the ``if`` of a node in the transaction that makes it ready, from the rows that it refers to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.domain.chain import Dag, Node
from adjudge.domain.chain_condition import Condition
from adjudge.domain.errors import InvalidInput
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import Artifact
from adjudge.store.engine.driver import Tx


async def evaluate_conditions(
    tx: Tx, dags: Mapping[str, Dag], conditional: Sequence[tuple[str, Node]]
) -> list[tuple[str, Node, bool]]:
    """Evaluate the ``if`` of each (run, node).

    One that cannot be evaluated (values that do not compare, an artifact too large for its row) counts as true: the job
    of the node evaluates it again, and fails with the reason if the node must not run.
    """
    answers = []
    for run_id in sorted({run_id for run_id, _ in conditional}):
        nodes = [node for run, node in conditional if run == run_id]
        dag, deps = dags[run_id], {dep for node in nodes for dep in node.deps}
        mapped = {dep for dep in deps if dag.by_id[dep].map_spec is not None}
        found = await chain_queries.find_artifacts(tx, run_id, deps - mapped, mapped)
        parameters = (await chain_queries.find_run(tx, run_id)).parameters
        answers += [(run_id, node, _holds(node, parameters, found)) for node in nodes]
    return answers


def find_blob_dependency(condition: Condition, found: Mapping[str, Artifact | list[Artifact]]) -> str | None:
    for path in condition.paths:
        if path[0] == "artifacts" and (dep := str(path[1])) in found and _is_large(found[dep]):
            return dep
    return None


def _holds(node: Node, parameters: Mapping[str, Any], found: Mapping[str, Artifact | list[Artifact]]) -> bool:
    if node.condition is None or find_blob_dependency(node.condition, found) is not None:
        return True
    seen = {path[1] for path in node.condition.paths if path[0] == "artifacts"}
    artifacts = {key: _plain(value) for key, value in found.items() if key in seen}
    try:
        return node.condition.evaluate({"parameters": parameters, "artifacts": artifacts})
    except InvalidInput:
        return True


def _is_large(value: Artifact | list[Artifact]) -> bool:
    return any(map(_is_large, value)) if isinstance(value, list) else value.digest is not None


def _plain(value: Artifact | list[Artifact]) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if value.text is None else json.loads(value.text)
