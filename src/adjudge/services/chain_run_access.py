"""Who may see and control a chain run.

``run:read`` and ``run:control`` cover the runs that a user started, and the sub-chain runs that their nodes started.
The approvers of a waiting node may see its run and decide on the node. ``run:read_all`` and ``run:control_all`` cover
the runs of all users and those that triggers started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adjudge.chains.approval import APPROVAL_TYPE, WAIT_APPROVAL
from adjudge.chains.map_node import SUBCHAIN_TYPE
from adjudge.domain.authority import Authority, Grant
from adjudge.domain.errors import Forbidden, NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ChainRunStatus
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.store import Database, Tx
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import ChainNodeRow, ChainRunRow

_MAY_NEED_APPROVAL: Final = (APPROVAL_TYPE, SUBCHAIN_TYPE)


async def find_readable(database: Database, viewer: Viewer, run_id: str) -> ChainRunRow:
    """The run, if the viewer may see it; else raise ``NotFound``."""

    async def read(tx: Tx) -> ChainRunRow:
        run = await chain_queries.find_run(tx, run_id)
        if viewer.can(Permission.RUN_READ_ALL) or _started(viewer, run):
            return run
        if await chain_queries.has_question_for(tx, run_id, _names(viewer)):
            return run
        raise NotFound("run", run_id)

    return await database.read(read)


def can_control(viewer: Viewer, run: ChainRunRow) -> bool:
    owns = _started(viewer, run) and viewer.can(Permission.RUN_CONTROL)
    return owns or viewer.can(Permission.RUN_CONTROL_ALL)


async def find_controllable(database: Database, viewer: Viewer, run_id: str) -> ChainRunRow:
    """The run, if the viewer may change it; raise ``Forbidden`` if it can only be read."""
    run = await find_readable(database, viewer, run_id)
    _require_control(viewer, run)
    return run


def _require_control(viewer: Viewer, run: ChainRunRow) -> None:
    if not can_control(viewer, run):
        raise Forbidden(
            f"Run {run.id!r} belongs to another user; {Permission.RUN_CONTROL_ALL} is required.",
            permission=str(Permission.RUN_CONTROL_ALL),
        )


def authority_of(viewer: Viewer) -> Authority:
    """The authority of a run that the viewer starts: at most the permissions of the viewer and of the token used."""
    token_id = viewer.credential_id if viewer.via is AuthMethod.TOKEN else None
    return Authority((Grant(viewer.id, token_id),))


def may_complete(viewer: Viewer, node: ChainNodeRow) -> bool:
    """Whether the viewer, who may change the run, may mark a node as success.

    Only approvers decide on a node that waits for approval, and the run of a ``chain`` node may contain one. Skipping
    either has the effect of changing the chain, so it requires the same permission.
    """
    return node.type not in _MAY_NEED_APPROVAL or viewer.can(Permission.CHAIN_WRITE)


def require_completion(viewer: Viewer, node: ChainNodeRow) -> None:
    """Raise if the viewer may not mark the node as success."""
    if not may_complete(viewer, node):
        viewer.require(Permission.CHAIN_WRITE)


def can_approve(viewer: Viewer, run: ChainRunRow, node: ChainNodeRow) -> bool:
    """Whether the viewer may approve or reject a node: its approvers, else users who may change its run."""
    if node.wait_on != WAIT_APPROVAL:
        return False
    asked = node.artifact if isinstance(node.artifact, Mapping) else {}
    approvers = asked.get("approvers")
    return bool({*_names(viewer)} & {*approvers}) if approvers else can_control(viewer, run)


def require_approver(viewer: Viewer, run: ChainRunRow, node: ChainNodeRow) -> None:
    """Raise if the viewer is not an approver of the node."""
    if can_approve(viewer, run, node):
        return
    asked = node.artifact if isinstance(node.artifact, Mapping) else {}
    if approvers := asked.get("approvers"):
        raise Forbidden(f"Only an approver of this node can decide: {', '.join(map(str, approvers))}.")
    _require_control(viewer, run)


async def list_readable(
    database: Database, viewer: Viewer, *, chain_id: str, status: ChainRunStatus | None, before: str | None, limit: int
) -> list[ChainRunRow]:
    """Runs that the viewer may see, newest first: their own, and those that wait for their approval."""
    if viewer.can(Permission.RUN_READ_ALL):
        return await database.read(
            lambda tx: chain_queries.page_runs(tx, chain_id=chain_id, status=status, before=before or "", limit=limit)
        )
    return await database.read(
        lambda tx: chain_queries.page_runs_of_user(
            tx, viewer.id, _names(viewer), chain_id=chain_id, status=status, before=before or "", limit=limit
        )
    )


def _started(viewer: Viewer, run: ChainRunRow) -> bool:
    return viewer.user_id is not None and run.started_by == viewer.user_id


def _names(viewer: Viewer) -> tuple[str, str]:
    """The names under which the definition of a chain can list the viewer as an approver."""
    return viewer.name, viewer.id
