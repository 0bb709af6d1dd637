"""What a node type is to the engine: the contract between chains and whatever they run.

An executor does one kind of work and knows nothing of rows, leases or DAGs. It is handed a context and answers with a
``NodeResult``, or with ``Waiting`` when the rest happens elsewhere. What it raises is classified where all failures
are (``adjudge.domain.retry.classify``): a domain error that the caller would have to fix (``InvalidInput``,
``NotFound``, ``Conflict``) is final; everything else, ``NodeFailed`` included, is tried again for as long as the node's
``retry`` allows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from adjudge.domain.authority import Authority
from adjudge.domain.errors import NodeFailed
from adjudge.store.engine.driver import Tx

__all__ = [
    "Executor",
    "NodeContext",
    "NodeFailed",
    "NodeResult",
    "NodeWaiting",
    "StopSignal",
    "WaitProbe",
    "WaitResult",
    "never_missed",
]


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The work is done. ``artifact`` is any JSON value; dependents see it as ``artifacts.<node id>``."""

    artifact: Any = None


@dataclass(frozen=True, slots=True)
class NodeWaiting:
    """The work goes on elsewhere: the node stays ``running`` and holds no worker until somebody resumes it.

    The wait is recorded in the transaction that ends the execution, and the kind's probe is asked in the same
    transaction, so a thing that ended before the wait was recorded is not missed.
    """

    wait_kind: str
    """The kind of thing awaited: ``run``, ``submission``, ``approval``, ``timer``…; it must have a probe."""
    wait_key: str
    """The key of the object."""
    artifact: Any = None
    """Stored on the node while it waits; kept if the resume gives no artifact."""
    until_ms: int | None = None
    """Unix time in milliseconds. A ``timer`` then succeeds; any other wait then fails as timed out."""


class StopSignal(Protocol):
    """The part of ``asyncio.Event`` that an executor needs."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object: ...


class NodeContext(Protocol):
    """The inputs and operations of an executor."""

    @property
    def run_id(self) -> str: ...

    @property
    def chain_id(self) -> str: ...

    @property
    def chain_name(self) -> str: ...

    @property
    def node_id(self) -> str:
        """The node; the instances of a mapped node are called ``id[0]``, ``id[1]`` and so on."""
        ...

    @property
    def attempt(self) -> int:
        """The attempt, from 1; manual retries count on."""
        ...

    @property
    def cfg(self) -> Mapping[str, Any]:
        """The node's cfg with its templates rendered, valid by ``cfg_schema``."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    @property
    def artifacts(self) -> Mapping[str, Any]:
        """The artifacts of the node's dependencies, by node id. A skipped or failed one has none."""
        ...

    @property
    def checkpoint(self) -> Any | None:
        """The last checkpoint of an earlier attempt of this node."""
        ...

    @property
    def actor(self) -> str:
        """The name of the user for whom the run was started, for display; ``authority`` decides what it may do."""
        ...

    @property
    def authority(self) -> Authority | None:
        """The authority of the run, resolved by ``chains.rights``."""
        ...

    @property
    def trace_id(self) -> str | None: ...

    @property
    def stop_requested(self) -> StopSignal:
        """Set when the run is stopping. An executor that ignores it is canceled after the grace period."""
        ...

    async def save_checkpoint(self, document: Any) -> None:
        """Store ``document`` for the next attempt; refused (``FenceRefused``) if this attempt was superseded."""
        ...

    async def log(self, text: str) -> None:
        """Add a line to the node's log, which is kept and streamed."""
        ...


class Executor(Protocol):
    """Runs the nodes of one type. One object serves all of them, at the same time.

    Optional attributes: ``is_instant = True`` if nodes finish almost immediately; a worker then runs all follow-ups
    of the type in its free slots, without a message for each. ``can_be_killed = True`` if nothing is lost by
    cancellation; the node is then canceled as soon as its run is stopped, not after the grace period.

    ``permissions``: what the user who started the run needs before a node is executed. ``execute`` checks permissions
    that depend on the node's cfg (``executors.impersonation``).
    """

    @property
    def type(self) -> str:
        """The name that DAGs call it by."""
        ...

    @property
    def cfg_schema(self) -> Mapping[str, Any]:
        """JSON Schema (draft 2020-12) of its cfg.

        Checked when a chain is defined, where a string that holds ``{{ … }}`` passes for anything, and again on the
        filled-in cfg before the node runs.
        """
        ...

    async def execute(self, context: NodeContext) -> NodeResult | NodeWaiting:
        """Run the node. It may be canceled at any await, and run again after a crash: it must be idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class WaitResult:
    """How an awaited object finished."""

    success: bool
    artifact: Any = None
    error: str | None = None


WaitProbe = Callable[[Tx, str], Awaitable[WaitResult | None]]
"""Looks whether the thing called ``key`` has ended, in the transaction that records the wait.

It must lock the row that it reads (``FOR SHARE`` on PostgreSQL), and the transaction that ends the thing must write
that row before it calls ``resume``: then one of the two always sees the other.
"""


async def never_missed(_tx: Tx, _key: str) -> WaitResult | None:
    """The probe of a thing that cannot end before the wait for it is recorded: there is nothing to look for."""
    return None
