"""``contest.start``, ``contest.freeze``, ``contest.thaw`` and ``contest.finalize``: the lifecycle of a contest.

A node acts as an organiser of the contest. Repeated, it changes nothing: it reports the state that it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from adjudge.chains.executor import NodeContext, NodeFailed, NodeResult
from adjudge.contests import clock
from adjudge.domain.contest import ContestPhase, ContestRole
from adjudge.domain.errors import Conflict, NodeRefused
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ContestState
from adjudge.executors.impersonation import find_contest_as
from adjudge.services.contest_access import ContestAccess, ContestView
from adjudge.services.contest_lifecycle import ContestLifecycleService
from adjudge.store import Database

CONTEST: Final = {"type": "string", "minLength": 1, "description": "Slug or id of the contest."}
CONTEST_CFG: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"contest": CONTEST},
    "required": ["contest"],
    "additionalProperties": False,
}


class _ContestExecutor:
    """What the nodes have in common: the contest as an organiser sees it."""

    permissions: ClassVar[tuple[Permission, ...]] = (Permission.CONTEST_JOIN,)
    cfg_schema: ClassVar[Mapping[str, Any]] = CONTEST_CFG

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lifecycle = ContestLifecycleService(database, ContestAccess(database))

    async def _find(self, context: NodeContext) -> ContestView:
        return await find_contest_as(self._database, context, context.cfg["contest"], ContestRole.ORGANISER)


class ContestStartExecutor(_ContestExecutor):
    """Starts a published contest now; its countdown ends.

    The artifact has `contest_id`, `slug` and `was_started`, which is true if the contest had started already.
    """

    type: ClassVar[str] = "contest.start"

    async def execute(self, context: NodeContext) -> NodeResult:
        """Set the start to the time of the database, unless it has passed."""
        view = await self._find(context)
        if view.contest.state is not ContestState.PUBLISHED:
            raise NodeRefused(f"The contest {view.contest.slug!r} is {view.contest.state}; publish it first.")
        was_started = view.public_phase is not ContestPhase.BEFORE
        if not was_started:
            await self._lifecycle.set_start(view.viewer, view.contest.id, None)
        return _result(view, was_started=was_started)


class ContestFreezeExecutor(_ContestExecutor):
    """Freezes the public scoreboard of a running contest now.

    The artifact has `contest_id`, `slug` and `was_frozen`, which is true if it was frozen already.
    """

    type: ClassVar[str] = "contest.freeze"

    async def execute(self, context: NodeContext) -> NodeResult:
        """Freeze the scoreboard, unless it is frozen."""
        view = await self._find(context)
        began = clock.freezes_at(view.times.timeline)
        was_frozen = began is not None and began <= view.times.now_us
        if not was_frozen:
            if view.public_phase is not ContestPhase.RUNNING:
                raise NodeRefused(f"The contest {view.contest.slug!r} does not run; only a running one is frozen.")
            await self._lifecycle.freeze_now(view.viewer, view.contest.id)
        return _result(view, was_frozen=was_frozen)


class ContestThawExecutor(_ContestExecutor):
    """Thaws a contest that has ended for all, so that its public scoreboard shows everything.

    The artifact has `contest_id`, `slug` and `was_frozen`. A contest that still runs fails the node for good.
    """

    type: ClassVar[str] = "contest.thaw"

    async def execute(self, context: NodeContext) -> NodeResult:
        """Thaw the scoreboard and record it in the audit log."""
        view = await self._find(context)
        await self._lifecycle.thaw(view.viewer, view.contest.id)
        return _result(view, was_frozen=view.times.timeline.has_freeze and view.contest.thaw_at is None)


class ContestFinalizeExecutor(_ContestExecutor):
    """Makes the results of an ended contest official.

    The artifact has `contest_id`, `slug` and `was_finalized`, which is true if that was done already. While submissions
    are unjudged or clarifications are open, the node fails with the list and is retried as its `retry` says.
    """

    type: ClassVar[str] = "contest.finalize"

    async def execute(self, context: NodeContext) -> NodeResult:
        """Finalize the contest, unless it is finalized."""
        view = await self._find(context)
        was_finalized = view.contest.state is ContestState.FINALIZED
        if not was_finalized:
            try:
                await self._lifecycle.finalize(view.viewer, view.contest.id)
            except Conflict as refused:
                if "blockers" not in refused.fields:
                    raise
                raise NodeFailed(refused.message) from None
        return _result(view, was_finalized=was_finalized)


def _result(view: ContestView, **found: bool) -> NodeResult:
    return NodeResult({"contest_id": view.contest.id, "slug": view.contest.slug, **found})
