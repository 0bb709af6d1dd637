"""Chains, runs, nodes and triggers on the wire."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from adjudge.api.moments import moment
from adjudge.api.wire.base import MOMENT_EXAMPLE, Wire
from adjudge.chains.definition import NAME, NAME_CHARACTERS, NAME_RULE
from adjudge.domain.states import NodeStatus, RunStatus
from adjudge.store import chain_triggers
from adjudge.store.chain_values import Chain, ChainVersion, LogLine, NodeView, Run, StatusChange

_DAG_EXAMPLE = {
    "nodes": [
        {"id": "check", "type": "noop"},
        {"id": "publish", "type": "noop", "deps": ["check"], "retry": {"max_attempts": 3, "backoff_ms": 2000}},
    ]
}
_MOMENT = Field(examples=[MOMENT_EXAMPLE])
_NEXT = Field(description="The cursor of the next page; null at the end.")


def _named(name: str) -> str:
    """Refuse a bad name in words; the pattern itself stands in the schema."""
    if re.fullmatch(NAME, name) is None:
        raise PydanticCustomError("name", NAME_RULE)
    return name


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=NAME_CHARACTERS),
    AfterValidator(_named),
    Field(description=NAME_RULE, examples=["nightly-verify"], json_schema_extra={"pattern": NAME}),
]
Reason = Annotated[str, Field(max_length=500, description="Kept with what was done.", examples=["the disk was full"])]
Dag = Annotated[
    dict[str, Any], Field(description="The DAG; the how-to on chains explains it.", examples=[_DAG_EXAMPLE])
]


class NewChain(Wire):
    """A chain to be defined."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    enabled: bool = True


class ChainChange(Wire):
    """A chain as it is to be from now on."""

    name: Name
    description: str | None = Field(default=None, max_length=4000)
    dag: Dag
    version: int = Field(ge=1, le=2**53, description="The version that was read; another by now is a CONFLICT.")


class ChainSummary(Wire):
    """A chain in a list."""

    id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    created_at: str = _MOMENT
    updated_at: str = _MOMENT

    @classmethod
    def of(cls, chain: Chain) -> ChainSummary:
        """Make it of a row."""
        return cls(**_chain_fields(chain))


class ChainDetail(ChainSummary):
    """A chain with its DAG."""

    dag: dict[str, Any]

    @classmethod
    def whole(cls, chain: Chain) -> ChainDetail:
        """Make it of a row."""
        return cls(**_chain_fields(chain), dag=dict(chain.dag or {}))


class ChainList(Wire):
    """A numbered page of chains, by name."""

    items: list[ChainSummary]
    page: int
    size: int
    total: int


class VersionInfo(Wire):
    """A chain as it once was."""

    version: int
    name: str
    description: str | None
    dag: dict[str, Any]
    actor: str | None
    created_at: str = _MOMENT

    @classmethod
    def of(cls, version: ChainVersion) -> VersionInfo:
        """Make it of a row."""
        return cls(
            version=version.version,
            name=version.name,
            description=version.description,
            dag=dict(version.dag),
            actor=version.actor,
            created_at=moment(version.created_at),
        )


class VersionList(Wire):
    """Versions, the newest first."""

    items: list[VersionInfo]


class NewRunBody(Wire):
    """What a run begins with."""

    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"problem": "multiples"}])
    reason: Reason = ""


class RunStarted(Wire):
    """The run that stands for a start."""

    run_id: str
    is_new: bool = Field(description="False: the idempotency key was known, and this is the run it stood for.")


class RunInfo(Wire):
    """One run of a chain."""

    id: str
    chain_id: str
    chain_name: str
    chain_version: int
    status: RunStatus
    parameters: dict[str, Any]
    trigger_kind: str
    started_by: str | None
    actor: str | None = Field(description="Whoever changed its status last.")
    reason: str | None
    nodes_total: int
    nodes_open: int
    nodes_failed: int
    parent_run_id: str | None
    origin_run_id: str | None = Field(description="The run that this one repeats.")
    place: Literal["wanted", "held"] | None = Field(
        description="Where a chain limits its runs: `wanted` while it waits for its turn, `held` while it has it."
    )
    created_at: str = _MOMENT
    started_at: str | None
    finished_at: str | None

    @classmethod
    def of(cls, run: Run) -> RunInfo:
        """Make it of a row."""
        return cls(
            id=run.id,
            chain_id=run.chain_id,
            chain_name=run.chain_name,
            chain_version=run.chain_version,
            status=run.status,
            parameters=dict(run.parameters),
            trigger_kind=run.trigger_kind,
            started_by=run.started_by,
            actor=run.actor,
            reason=run.reason,
            nodes_total=run.nodes_total,
            nodes_open=run.nodes_open,
            nodes_failed=run.nodes_failed,
            parent_run_id=run.parent_run_id,
            origin_run_id=run.origin_run_id,
            place=run.place,
            created_at=moment(run.created_at),
            started_at=moment(run.started_at),
            finished_at=moment(run.finished_at),
        )


class RunPage(Wire):
    """Runs, the newest first."""

    items: list[RunInfo]
    next: str | None = _NEXT


class NodeInfo(Wire):
    """One node of a run."""

    node_id: str
    type: str
    status: NodeStatus
    attempt: int
    last_error: str | None
    artifact: Any = Field(description="What it left behind; null where it is large: then fetch it.")
    artifact_bytes: int
    job_id: str | None
    actor: str | None
    reason: str | None
    waiting_on: int = Field(description="How many of its dependencies have not ended.")
    wait_on: str | None = Field(description="What it waits for without holding a worker.")
    wait_until: str | None
    place: Literal["wanted", "held"] | None = Field(
        description="Where nodes are limited: `wanted` by one that waits for a place, `held` by one that runs."
    )
    parent_id: str | None = Field(description="The mapped node that it is an instance of.")
    started_at: str | None
    ended_at: str | None

    @classmethod
    def of(cls, node: NodeView) -> NodeInfo:
        """Make it of a row."""
        return cls(
            node_id=node.node_id,
            type=node.type,
            status=node.status,
            attempt=node.attempt,
            last_error=node.last_error,
            artifact=node.artifact,
            artifact_bytes=node.artifact_bytes,
            job_id=node.job_id,
            actor=node.actor,
            reason=node.reason,
            waiting_on=node.waiting_on,
            wait_on=node.wait_on,
            wait_until=moment(node.wait_until),
            place=node.place,
            parent_id=node.parent_id,
            started_at=moment(node.started_at),
            ended_at=moment(node.ended_at),
        )


class NodeList(Wire):
    """The nodes of a run, in the order of its DAG."""

    items: list[NodeInfo]


class StopBody(Wire):
    """Why a run is to stop."""

    reason: Reason = ""


class RunState(Wire):
    """How a run stands."""

    run_id: str
    status: RunStatus


class NodeAction(Wire):
    """Why, and what the node should have left behind."""

    reason: Reason = ""
    artifact: Any = Field(
        default=None, description="For complete: what the node's dependents will see.", examples=[{"count": 3}]
    )


class RerunBody(Wire):
    """From where a run is repeated."""

    from_node: str | None = Field(default=None, max_length=200, description="null: from the beginning.")
    reason: Reason = ""


class Decision(Wire):
    """A person's yes or no."""

    approved: bool
    reason: Annotated[str, Field(min_length=1, max_length=500, examples=["verified on all solutions"])]


class ChangeInfo(Wire):
    """One change of a run, or of a node of it."""

    id: int
    node_id: str | None
    from_status: str
    to_status: str
    attempt: int | None
    actor: str | None
    reason: str | None
    at: str = _MOMENT

    @classmethod
    def of(cls, change: StatusChange) -> ChangeInfo:
        """Make it of a row."""
        return cls(
            id=change.id,
            node_id=change.node_id,
            from_status=change.from_status,
            to_status=change.to_status,
            attempt=change.attempt,
            actor=change.actor,
            reason=change.reason,
            at=moment(change.at),
        )


class ChangeList(Wire):
    """Changes, the oldest first."""

    items: list[ChangeInfo]


class LineInfo(Wire):
    """One line that a node wrote."""

    id: int
    attempt: int
    text: str
    at: str = _MOMENT

    @classmethod
    def of(cls, line: LogLine) -> LineInfo:
        """Make it of a row."""
        return cls(id=line.id, attempt=line.attempt, text=line.text, at=moment(line.at))


class LineList(Wire):
    """Lines, the oldest first; ask again after the last id."""

    items: list[LineInfo]


class NewTriggerBody(Wire):
    """What starts a chain by itself."""

    name: Name
    kind: Literal["cron", "delay", "event", "webhook", "chain"]
    spec: dict[str, Any] = Field(examples=[{"cron": "0 3 * * *", "timezone": "Europe/Berlin"}])
    enabled: bool = True


class TriggerChange(Wire):
    """A trigger as it is to be from now on; what is left out stays."""

    version: int = Field(ge=1, le=2**53)
    spec: dict[str, Any] | None = Field(None, examples=[{"cron": "0 4 * * *", "timezone": "Europe/Berlin"}])
    enabled: bool | None = None


class TriggerInfo(Wire):
    """A trigger, without its secret."""

    id: str
    chain_id: str
    name: str
    kind: str
    spec: dict[str, Any]
    enabled: bool
    next_at: str | None
    last_error: str | None
    version: int
    created_at: str = _MOMENT

    @classmethod
    def of(cls, trigger: chain_triggers.Trigger) -> TriggerInfo:
        """Make it of a row."""
        return cls(**_trigger_fields(trigger))


class TriggerMade(TriggerInfo):
    """A new trigger; a webhook's secret is shown this once."""

    secret: str | None

    @classmethod
    def made(cls, trigger: chain_triggers.Trigger, secret: str | None) -> TriggerMade:
        """Make it of a row and the secret."""
        return cls(**_trigger_fields(trigger), secret=secret)


class TriggerList(Wire):
    """The triggers of a chain."""

    items: list[TriggerInfo]


class Ticked(Wire):
    """A webhook's call that was taken."""

    tick: str


class ExecutorInfo(Wire):
    """A type that a node may have."""

    type: str
    summary: str
    cfg_schema: dict[str, Any]
    package: str


class ExecutorList(Wire):
    """Every type there is."""

    items: list[ExecutorInfo]


def _chain_fields(chain: Chain) -> dict[str, Any]:
    return {
        "id": chain.id,
        "name": chain.name,
        "description": chain.description,
        "enabled": chain.enabled,
        "version": chain.version,
        "created_at": moment(chain.created_at),
        "updated_at": moment(chain.updated_at),
    }


def _trigger_fields(trigger: chain_triggers.Trigger) -> dict[str, Any]:
    return {
        "id": trigger.id,
        "chain_id": trigger.chain_id,
        "name": trigger.name,
        "kind": trigger.kind,
        "spec": dict(trigger.spec),
        "enabled": trigger.enabled,
        "next_at": moment(trigger.next_at),
        "last_error": trigger.last_error,
        "version": trigger.version,
        "created_at": moment(trigger.created_at),
    }
