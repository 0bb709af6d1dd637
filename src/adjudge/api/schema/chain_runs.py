"""Wire models of chain runs and their nodes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from adjudge.api.schema.base import ApiModel

Reason = Annotated[
    str, Field(max_length=500, description="Reason, stored in the history.", examples=["the disk was full"])
]


class ChainRunCreate(ApiModel):
    """Parameters of a new run."""

    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"problem": "multiples"}])
    reason: Reason = ""


class StopBody(ApiModel):
    """Reason for stopping a run."""

    reason: Reason = ""


class NodeActionRequest(ApiModel):
    """Reason, and the artifact to store."""

    reason: Reason = ""
    artifact: Any = Field(
        default=None, description="Only for `:complete`: the artifact for dependent nodes.", examples=[{"count": 3}]
    )


class RerunRequest(ApiModel):
    """Node to rerun from."""

    from_node: str | None = Field(
        default=None, max_length=200, description="null: from the start. Approvals before it are asked for again."
    )
    reason: Reason = ""


class ReasonRequired(ApiModel):
    """Reason for approving or rejecting a node; it is stored in the audit log and in the artifact."""

    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["verified on all solutions"])]


class DecisionRequest(ReasonRequired):
    """Body of `:decide`, which `:approve` and `:reject` replace."""

    approved: bool
