"""Deciding a node's ``if`` in the transaction that makes it ready, from the rows it looks at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.domain.chain import Dag, Node
from adjudge.domain.errors import InvalidInput
from adjudge.store import chain_runs
from adjudge.store.chain_values import Artifact
from adjudge.store.driver import Tx


async def holding(
    tx: Tx, dags: Mapping[str, Dag], conditional: Sequence[tuple[str, Node]]
) -> list[tuple[str, Node, bool]]:
    """Say for each (run, node) whether its ``if`` holds.

    One that cannot be decided (values that do not compare, an artifact too large for its row) counts as holding: the
    node's job meets the same difficulty, and fails with it where everybody can see.
    """
    answers = []
    for run_id in sorted({run_id for run_id, _ in conditional}):
        nodes = [node for run, node in conditional if run == run_id]
        scope = await scope_of(tx, dags[run_id], run_id, {dep for node in nodes for dep in node.deps})
        answers += [(run_id, node, _holds(node, scope)) for node in nodes]
    return answers


def _holds(node: Node, scope: Mapping[str, Any]) -> bool:
    try:
        return node.condition is None or node.condition.holds(scope)
    except InvalidInput:
        return True


async def scope_of(tx: Tx, dag: Dag, run_id: str, deps: set[str]) -> dict[str, Any]:
    """What conditions and templates look at, as far as the rows tell; what lies in a blob is not among it."""
    mapped = {dep for dep in deps if dag.by_id[dep].fan is not None}
    found = await chain_runs.artifacts(tx, run_id, deps - mapped, mapped)
    run = await chain_runs.find(tx, run_id)
    return {"parameters": run.parameters, "artifacts": {key: plain(value) for key, value in found.items()}}


def plain(value: Artifact | list[Artifact]) -> Any:
    """An artifact as JSON; one that lies in a blob is nothing here."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if value.text is None else json.loads(value.text)
