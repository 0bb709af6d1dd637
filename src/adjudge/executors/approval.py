"""``wait_approval``: waits for the approval of a user, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adjudge.chains.approval import APPROVAL_TYPE, WAIT_APPROVAL
from adjudge.chains.artifacts import INLINE_BYTES, inline_artifact
from adjudge.chains.executor import NodeContext, NodeWaiting
from adjudge.store import Database
from adjudge.store.chains import waits


class WaitApprovalExecutor:
    """Waits until a user approves or rejects, with a reason. It holds no worker meanwhile.

    The artifact has `approved`, `by` (name), `by_id` (user id) and `reason`. A rejection fails the node, unless `on_no`
    is `go_on`: then it succeeds and an `if` of a dependent decides (`artifacts.this.approved`). Without an answer
    within `timeout_sec` it fails.
    """

    type: ClassVar[str] = APPROVAL_TYPE
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What is to be decided."},
            "details": {"description": "Any JSON value that helps to decide; shown with the question."},
            "approvers": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "Names or ids of the users who may answer. Default: users who may control the run.",
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
        """Log the question and wait for the decision."""
        cfg = context.cfg
        asked = {
            "question": cfg["question"],
            "details": cfg.get("details"),
            "approvers": cfg.get("approvers"),
            "on_no": cfg.get("on_no", "fail"),
        }
        size_bytes = inline_artifact(asked).size_bytes
        if size_bytes > INLINE_BYTES:  # large details must not fail the node: the question itself is small
            asked["details"] = f"Too large to be shown here ({size_bytes} bytes): look at the nodes before this one."
        until_ms = None
        if "timeout_sec" in cfg:  # by the clock of the database, which also ends the wait
            until_ms = await self._database.read(waits.now_ms) + round(cfg["timeout_sec"] * 1_000)
        await context.log(f"asked: {cfg['question']}")
        return NodeWaiting(WAIT_APPROVAL, f"{context.run_id}/{context.node_id}/{context.attempt}", asked, until_ms)
