"""The interface of node types (executors) and of waits.

An executor does one kind of work and knows nothing of rows, leases or DAGs. It gets a context and returns a
``NodeResult``, or ``NodeWaiting`` if the work continues elsewhere. Exceptions are classified as for all jobs
(``domain.retry.classify``): an error that the author of the chain has to fix (``InvalidInput``, ``NotFound``,
``Conflict``) fails the node; everything else, ``NodeFailed`` included, is retried as the ``retry`` of the node allows.
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
    """The work continues elsewhere: the node stays ``running`` and holds no worker until it is resumed.

    The wait is stored in the transaction that ends the execution. The same transaction calls the probe of the kind, so
    an object that finished before the wait was stored is not missed.
    """

    wait_kind: str
    """The kind of object: ``run``, ``submission``, ``approval``, ``timer``…; it must have a probe."""
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

    ``permissions`` are those that the user of the run needs for any node of the type. ``execute`` checks those that
    depend on the cfg of the node (``executors.impersonation``).
    """

    @property
    def type(self) -> str:
        """Its name in DAGs."""
        ...

    @property
    def cfg_schema(self) -> Mapping[str, Any]:
        """JSON Schema (draft 2020-12) of its cfg.

        Checked when a chain is saved, where a string with ``{{ … }}`` is accepted for any type, and before a node runs,
        with templates replaced.
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
"""Returns the result of the object ``key`` if it has finished, in the transaction that stores the wait.

It must lock the row that it reads (``FOR SHARE`` on PostgreSQL). A transaction that finishes the object must write that
row before it calls ``resume``. Then one of the two transactions sees the other.
"""


async def never_missed(_tx: Tx, _key: str) -> WaitResult | None:
    """The probe of objects that cannot finish before the wait is stored."""
    return None
