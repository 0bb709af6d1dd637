"""Changes of contests. Every change of a contest requires the version that was read, and is in the audit log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from enum import StrEnum
from typing import Any

from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.errors import NotFound, VersionConflict
from adjudge.domain.states import CONTEST, ContestState
from adjudge.store.contests import statements as sql
from adjudge.store.contests.models import ContestInvitationRow, ContestProblem, ContestRow, ContestSettings
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.ops import audit_log


async def insert(tx: Tx, contest_id: str, slug: str, settings: ContestSettings, *, created_by: str | None) -> None:
    """Create a contest as a draft; a slug that exists is a Conflict."""
    await tx.execute(sql.INSERT, id=contest_id, slug=slug, created_by=created_by, **_setting_values(settings))
    await tx.execute(sql.INSERT_COUNTER, contest_id=contest_id)
    await _audit(tx, created_by or "system", "create", contest_id, "", slug=slug)


async def lock(tx: Tx, contest_id: str) -> ContestRow:
    """Lock a contest against other changes of its settings, times and state."""
    return or_not_found(await fetch_one(tx, sql.LOCK, id=contest_id), "contest", contest_id)


async def update(
    tx: Tx, contest: ContestRow, settings: ContestSettings, *, slug: str, frozen_at: int | None, actor: str, reason: str
) -> None:
    """Change the settings if the contest still has the version of ``contest``."""
    values = _setting_values(settings)
    changed = await tx.execute(
        sql.UPDATE,
        id=contest.id,
        version=contest.version,
        slug=slug,
        frozen_at=frozen_at,
        actor=actor,
        reason=reason,
        **values,
    )
    _check_version(changed, contest)
    before = _setting_values(contest.settings)
    differences = {name: [before[name], value] for name, value in values.items() if before[name] != value}
    await _audit(tx, actor, "update", contest.id, reason, changes=differences)


async def set_state(tx: Tx, contest: ContestRow, state: ContestState, *, actor: str, reason: str) -> None:
    """Change the stored state along an edge of its state machine; a trigger logs it."""
    CONTEST.check(contest.state, state)
    changed = await tx.execute(
        sql.SET_STATE, id=contest.id, version=contest.version, state=str(state), actor=actor, reason=reason
    )
    _check_version(changed, contest)
    await _audit(tx, actor, str(state), contest.id, reason, from_state=str(contest.state))


async def set_times(
    tx: Tx,
    contest: ContestRow,
    *,
    actor: str,
    reason: str,
    frozen_at: int | None = None,
    thaw_at: int | None = None,
    end_of_updates_at: int | None = None,
) -> None:
    """Set the times that are given; the others are kept."""
    times = {
        "frozen_at": contest.frozen_at if frozen_at is None else frozen_at,
        "thaw_at": contest.thaw_at if thaw_at is None else thaw_at,
        "end_of_updates_at": contest.end_of_updates_at if end_of_updates_at is None else end_of_updates_at,
    }
    changed = await tx.execute(
        sql.SET_TIMES, id=contest.id, version=contest.version, actor=actor, reason=reason, **times
    )
    _check_version(changed, contest)
    await _audit(tx, actor, "set_times", contest.id, reason, **times)


async def next_version(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Count a change of the problems as a change of the contest, so that older forms are refused."""
    await tx.execute(sql.NEXT_VERSION, id=contest_id, actor=actor, reason=reason)


async def set_problems(tx: Tx, contest_id: str, problems: Sequence[ContestProblem], *, actor: str, reason: str) -> None:
    """Replace the problems of a contest, which gets a new version; the caller refolds the scoreboard."""
    await next_version(tx, contest_id, actor=actor, reason=reason)
    kept = {item.problem_id for item in problems}
    known = await tx.fetch(sql.PROBLEMS, contest_id=contest_id)
    gone = [(row.problem.problem_id,) for row in known if row.problem.problem_id not in kept]
    if gone:
        await tx.execute(sql.DELETE_PROBLEMS, gone, contest_id=contest_id)
    if kept & {row.problem.problem_id for row in known}:
        await tx.execute(sql.PARK_PROBLEMS, contest_id=contest_id)
    if problems:
        await tx.execute(sql.UPSERT_PROBLEMS, [tuple(map(_column_value, astuple(item))) for item in problems])
    await _audit(
        tx, actor, "set_problems", contest_id, reason, problems={item.label: item.problem_id for item in problems}
    )


async def grant_roles(
    tx: Tx, contest_id: str, grants: Sequence[tuple[str, ContestRole]], *, actor: str, granted_by: str | None = None
) -> None:
    """Grant roles (user, role); those that exist are kept."""
    if grants:
        rows = [(user_id, str(role)) for user_id, role in grants]
        await tx.execute(sql.GRANT_ROLES, rows, contest_id=contest_id, granted_by=granted_by)
        await _audit(tx, actor, "grant_roles", contest_id, "", roles=[list(row) for row in rows])


async def revoke_role(tx: Tx, contest_id: str, user_id: str, role: ContestRole, *, actor: str) -> None:
    """Revoke a role."""
    if not await tx.execute(sql.REVOKE_ROLES, contest_id=contest_id, user_id=user_id, role=str(role)):
        raise NotFound("role", f"{role} of {user_id}")
    await _audit(tx, actor, "revoke_role", contest_id, "", user_id=user_id, role=str(role))


async def insert_interval(
    tx: Tx,
    contest_id: str,
    interval_id: str,
    *,
    from_at: int,
    to_at: int | None,
    created_by: str | None,
    actor: str,
    reason: str,
) -> None:
    """Add a removed interval; a second open one is a Conflict."""
    await tx.execute(
        sql.INSERT_INTERVAL,
        id=interval_id,
        contest_id=contest_id,
        from_at=from_at,
        to_at=to_at,
        reason=reason,
        created_by=created_by,
    )
    await _audit(tx, actor, "remove_interval", contest_id, reason, from_at=from_at, to_at=to_at)


async def close_interval(tx: Tx, contest_id: str, interval_id: str, *, to_at: int, actor: str, reason: str) -> None:
    """End an open removed interval."""
    await tx.execute(sql.CLOSE_INTERVAL, id=interval_id, contest_id=contest_id, to_at=to_at)
    await _audit(tx, actor, "resume", contest_id, reason, interval_id=interval_id, to_at=to_at)


async def undo_interval(tx: Tx, contest_id: str, interval_id: str, *, actor: str, reason: str) -> bool:
    """Undo a removed interval; return whether it existed and counted."""
    changed = await tx.execute(sql.UNDO_INTERVAL, id=interval_id, contest_id=contest_id)
    if changed:
        await _audit(tx, actor, "undo_interval", contest_id, reason, interval_id=interval_id)
    return bool(changed)


async def insert_invitation(
    tx: Tx,
    contest_id: str,
    invitation_id: str,
    code_hash: str,
    *,
    kind: ParticipantKind,
    created_by: str | None,
    user_id: str | None = None,
    note: str | None = None,
    max_uses: int = 1,
    expires_at: int | None = None,
) -> None:
    """Create an invitation."""
    await tx.execute(
        sql.INSERT_INVITATION,
        id=invitation_id,
        contest_id=contest_id,
        code_hash=code_hash,
        kind=str(kind),
        user_id=user_id,
        note=note,
        max_uses=max_uses,
        created_by=created_by,
        expires_at=expires_at,
    )


async def use_invitation(tx: Tx, contest_id: str, code_hash: str, user_id: str) -> ContestInvitationRow | None:
    """Use an invitation; None if it is unknown, used up, revoked, expired or for somebody else."""
    return await fetch_one(tx, sql.USE_INVITATION, contest_id=contest_id, code_hash=code_hash, user_id=user_id)


async def revoke_invitation(tx: Tx, contest_id: str, invitation_id: str) -> None:
    """Revoke an invitation."""
    if not await tx.execute(sql.REVOKE_INVITATION, id=invitation_id, contest_id=contest_id):
        raise NotFound("invitation", invitation_id)


async def announce(tx: Tx, items: Sequence[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Record transitions (contest, transition, when it was due); return those that were not recorded before."""
    rows = await tx.fetch(sql.ANNOUNCE, items) if items else []
    return [(row["contest_id"], row["transition"], int(row["due_at"])) for row in rows]


async def retract(tx: Tx, items: Sequence[tuple[str, str]]) -> int:
    """Remove announced transitions (contest, transition); return how many there were."""
    return await tx.execute(sql.RETRACT, items) if items else 0


def _check_version(changed: int, contest: ContestRow) -> None:
    if not changed:
        raise VersionConflict("The contest was changed concurrently; read it again and retry.", contest_id=contest.id)


def _setting_values(settings: ContestSettings) -> dict[str, Any]:
    return {item.name: _column_value(getattr(settings, item.name)) for item in fields(settings)}


def _column_value(value: object) -> object:
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping | tuple | list):
        return json.dumps(value, sort_keys=True)
    return value


async def _audit(tx: Tx, actor: str, action: str, contest_id: str, reason: str, **details: object) -> None:
    await audit_log.record(
        tx, actor=actor, action=f"contest.{action}", object_kind="contest", objects={contest_id: details}, reason=reason
    )
