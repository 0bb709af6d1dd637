"""Answers to ``wait_approval`` nodes. The node type itself is in ``executors.approval``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from adjudge.domain.errors import InvalidInput, WrongNodeState
from adjudge.store import Tx
from adjudge.store.chains import queries as chain_queries
from adjudge.store.ops import audit_log

APPROVAL_TYPE: Final = "wait_approval"
WAIT_APPROVAL: Final = "approval"
"""The kind of wait of an ``APPROVAL_TYPE`` node."""


class ResumeNodes(Protocol):
    """Completes nodes that wait for an object, in the transaction that finishes the object."""

    async def __call__(
        self, tx: Tx, *, on: str, key: str, success: bool, artifact: Any = None, error: str | None = None
    ) -> int:
        """Resume waiting nodes; return how many there were."""
        ...


async def answer_approval(
    tx: Tx,
    resume: ResumeNodes,
    *,
    run_id: str,
    node_id: str,
    approved: bool,
    actor: str,
    reason: str,
    actor_name: str | None = None,
) -> None:
    """Answer an approval node. The actor and the reason are stored in the audit log and in the node's artifact.

    ``actor`` is a user's id; ``actor_name`` is shown, and may be in the list of approvers. Of two concurrent answers,
    the first ends the wait; the other one is rejected.
    """
    shown = actor_name or actor
    if not reason.strip():
        raise InvalidInput("reason: say why; it is kept with the decision.", field="reason")
    node = await chain_queries.find_node(tx, run_id, node_id)
    if node.wait_on != WAIT_APPROVAL or node.wait_key is None:
        raise WrongNodeState(f"Node {node_id!r} is not waiting for approval (status: {node.status}).", node_id=node_id)
    asked = node.artifact if isinstance(node.artifact, Mapping) else {}
    approvers = asked.get("approvers")
    if approvers and not {actor, shown} & set(approvers):
        raise InvalidInput(f"Only {', '.join(approvers)} may answer this question.", field="actor")
    succeeds = approved or asked.get("on_no") == "go_on"
    woken = await resume(
        tx,
        on=WAIT_APPROVAL,
        key=node.wait_key,
        success=succeeds,
        artifact={"approved": approved, "by": shown, "by_id": actor, "reason": reason},
        error=None if succeeds else f"{shown} rejected it: {reason}",
    )
    if not woken:
        raise WrongNodeState(f"Node {node_id!r} has already been answered.", node_id=node_id)
    await audit_log.record(
        tx,
        actor=actor,
        action="run.approve" if approved else "run.refuse",
        object_kind="chain_run",
        objects={run_id: {"node_id": node_id, "question": asked.get("question")}},
        reason=reason,
    )
