"""Changes of contests. Every change of a contest requires the version that was read, and is in the audit log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

from adjudge.domain.errors import VersionConflict
from adjudge.domain.states import CONTEST, ContestState
from adjudge.store.contests import statements as sql
from adjudge.store.contests.models import ContestRow, ContestSettings
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
