"""``wait_approval``: a person's yes or no, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol

from adjudge.chains.artifacts import INLINE_BYTES, inline_artifact
from adjudge.chains.executor import NodeContext, NodeWaiting
from adjudge.domain.errors import InvalidInput, WrongNodeState
from adjudge.store import Database, Tx
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains import waits
from adjudge.store.ops import audit_log

WAIT_APPROVAL: Final = "approval"
"""What a ``wait_approval`` node waits on."""


class WaitApprovalExecutor:
    """Waits until a person says yes or no, with a reason. It holds no worker meanwhile.

    The artifact has `approved`, `by` and `reason`. A no fails the node, unless `on_no` is `go_on`: then it succeeds and
    an `if` of a dependent decides (`artifacts.this.approved`). Nobody's answer within `timeout_sec` fails it.
    """

    type: ClassVar[str] = "wait_approval"
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What is to be decided."},
            "details": {"description": "Any JSON value that helps to decide; shown with the question."},
            "approvers": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "Who may answer, by name or id; whoever may control runs where it is left out.",
            },
            "on_no": {"enum": ["fail", "go_on"], "description": "What a no means; fail where it is left out."},
            "timeout_sec": {"type": "number", "minimum": 1, "maximum": 31_536_000, "description": "How long to wait."},
        },
        "required": ["question"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def execute(self, context: NodeContext) -> NodeWaiting:
        """Ask."""
        cfg = context.cfg
        asked = {
            "question": cfg["question"],
            "details": cfg.get("details"),
            "approvers": cfg.get("approvers"),
            "on_no": cfg.get("on_no", "fail"),
        }
        size_bytes = inline_artifact(asked).size_bytes
        if size_bytes > INLINE_BYTES:  # a question that can be asked must not fail because of what is shown beside it
            asked["details"] = f"Too large to be shown here ({size_bytes} bytes): look at the nodes before this one."
        until_ms = None
        if "timeout_sec" in cfg:  # by the database's clock, which ends the wait
            until_ms = await self._database.read(waits.now_ms) + round(cfg["timeout_sec"] * 1_000)
        await context.log(f"asked: {cfg['question']}")
        return NodeWaiting(WAIT_APPROVAL, f"{context.run_id}/{context.node_id}/{context.attempt}", asked, until_ms)


class ResumeNodes(Protocol):
    """Completes nodes that wait for a thing, in the transaction that ends the thing."""

    async def __call__(
        self, tx: Tx, *, on: str, key: str, success: bool, artifact: Any = None, error: str | None = None
    ) -> int:
        """Wake whoever waits; return how many there were."""
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
    actor_names: tuple[str, ...] = (),
) -> None:
    """Answer a question for good; who answered and why is kept in the audit log and in the node's artifact.

    ``actor_names`` are the other names that the actor goes by, for the list of approvers.
    Of two who answer at once, the one whose answer ends the wait has decided; the other is told so.
    """
    if not reason.strip():
        raise InvalidInput("reason: say why; it is kept with the decision.", field="reason")
    node = await chain_queries.find_node(tx, run_id, node_id)
    if node.wait_on != WAIT_APPROVAL or node.wait_key is None:
        raise WrongNodeState(f"Node {node_id!r} is not waiting for approval (status: {node.status}).", node_id=node_id)
    asked = node.artifact if isinstance(node.artifact, Mapping) else {}
    approvers = asked.get("approvers")
    if approvers and not {actor, *actor_names} & set(approvers):
        raise InvalidInput(f"Only {', '.join(approvers)} may answer this question.", field="actor")
    succeeds = approved or asked.get("on_no") == "go_on"
    woken = await resume(
        tx,
        on=WAIT_APPROVAL,
        key=node.wait_key,
        success=succeeds,
        artifact={"approved": approved, "by": actor, "reason": reason},
        error=None if succeeds else f"{actor} said no: {reason}",
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
