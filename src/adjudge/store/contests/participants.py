"""Participants of contests: registration, lists, clocks, groups. Every write takes any number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Final

from adjudge.domain.errors import Conflict, NotFound, VersionConflict
from adjudge.store.contests.models import (
    ContestGroupRow,
    NewParticipant,
    ParticipantMemberRow,
    ParticipantRow,
    ScoreboardParticipant,
)
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import column_names
from adjudge.store.engine.statement import Statement

_NEW: Final = tuple(name for name in column_names(NewParticipant) if name != "members")
_TYPES: Final = {
    "run_no": "bigint",
    "hidden": "boolean",
    "started_at": "bigint",
    "delay_us": "bigint",
    "extra_us": "bigint",
}
INSERT = Statement(
    "participants.insert",
    "Create participants.",
    f"""
    INSERT INTO participants ({", ".join(_NEW)}, created_at, updated_at)
    SELECT {", ".join(f"given_{name}" for name in _NEW)}, {{now}}, {{now}} FROM {{given}}
    """,
    input_columns={f"given_{name}": _TYPES.get(name, "text") for name in _NEW},
)
INSERT_MEMBERS = Statement(
    "participants.insert_members",
    "Add the users who submit for participants.",
    """
    INSERT INTO participant_members (contest_id, user_id, run_no, participant_id)
    SELECT given_contest_id, given_user_id, given_run_no, given_participant_id FROM {given}
    """,
    input_columns={
        "given_contest_id": "text",
        "given_user_id": "text",
        "given_run_no": "bigint",
        "given_participant_id": "text",
    },
)
DELETE_MEMBERS = Statement(
    "participants.delete_members",
    "Remove all users of participants.",
    "DELETE FROM participant_members WHERE participant_id IN (SELECT given_id FROM {given})",
    input_columns={"given_id": "text"},
)
FIND = Statement(
    "participants.find", "Read a participant.", "SELECT {columns} FROM participants WHERE id = :id", row=ParticipantRow
)
FIND_BY_CODES = Statement(
    "participants.find_by_codes",
    "Find participants of a contest by code.",
    """
    SELECT {columns:participants} FROM {given} JOIN participants ON contest_id = :contest_id AND code = given_code
    """,
    input_columns={"given_code": "text"},
    row=ParticipantRow,
)
OF_USER = Statement(
    "participants.of_user",
    "List the participants that a user submits for in the given contests, the last run first.",
    """
    SELECT {columns:participants} FROM {given}
    JOIN participant_members ON participant_members.contest_id = given_id AND participant_members.user_id = :user_id
    JOIN participants ON participants.id = participant_members.participant_id
    ORDER BY participants.run_no DESC
    """,
    row=ParticipantRow,
    input_columns={"given_id": "text"},
)
FIND_MANY = Statement(
    "participants.find_many",
    "Read several participants.",
    "SELECT {columns:participants} FROM {given} JOIN participants ON participants.id = given_id",
    row=ParticipantRow,
    input_columns={"given_id": "text"},
)
CONTESTS_OF_USER = Statement(
    "participants.contests_of_user",
    "List the contests that a user takes part in.",
    "SELECT contest_id, participant_id FROM participant_members WHERE user_id = :user_id ORDER BY contest_id",
)
PAGE = Statement(
    "participants.page",
    "List the participants of a contest by id, keyset-paginated.",
    """
    SELECT {columns} FROM participants WHERE contest_id = :contest_id AND id > :after
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:with_hidden AS bigint) = 1 OR NOT hidden)
    ORDER BY id LIMIT :limit
    """,
    row=ParticipantRow,
)
ON_SCOREBOARD = Statement(
    "participants.on_scoreboard",
    "List the participants of a contest that have a row on its scoreboard.",
    """
    SELECT {columns:participants} FROM participants
    LEFT JOIN organizations ON organizations.id = participants.organization_id
    LEFT JOIN teams ON teams.id = participants.team_id
    WHERE participants.contest_id = :contest_id AND participants.kind <> 'practice' ORDER BY participants.id
    """,
    row=ScoreboardParticipant,
    columns={"organization_name": "COALESCE(organizations.name, '')", "icpc_id": "teams.icpc_id"},
)
MEMBERS = Statement(
    "participants.members",
    "List the users of participants.",
    """
    SELECT {columns:participant_members} FROM {given}
    JOIN participant_members ON participant_id = given_id JOIN users ON users.id = user_id ORDER BY users.name
    """,
    input_columns={"given_id": "text"},
    row=ParticipantMemberRow,
    columns={"user_name": "users.name"},
)
COUNT_KINDS = Statement(
    "participants.count_kinds",
    "Count the participants of a contest by kind.",
    "SELECT kind, count(*) AS count FROM participants WHERE contest_id = :contest_id GROUP BY kind",
)
UPDATE = Statement(
    "participants.update",
    "Change a participant if its version is unchanged.",
    """
    UPDATE participants SET code = :code, name = :name, kind = :kind, organization_id = :organization_id,
        label = :label, location = :location, hidden = :hidden, disqualified_at = :disqualified_at,
        started_at = :started_at, delay_us = :delay_us, extra_us = :extra_us,
        penalty_adjust_sec = :penalty_adjust_sec, version = version + 1, updated_at = {now}
    WHERE id = :id AND version = :version
    """,
)
START = Statement(
    "participants.start",
    "Start the own window of a participant that has not started.",
    """
    UPDATE participants SET started_at = {now}, version = version + 1, updated_at = {now}
    WHERE id = :id AND started_at IS NULL
    RETURNING {columns}
    """,
    row=ParticipantRow,
)
SET_CLOCKS = Statement(
    "participants.set_clocks",
    "Set delay and extra time of participants of a contest.",
    """
    UPDATE participants SET delay_us = COALESCE(given_delay_us, delay_us),
        extra_us = COALESCE(given_extra_us, extra_us), version = version + 1, updated_at = {now}
    FROM {given} WHERE id = given_id AND contest_id = :contest_id
    """,
    input_columns={"given_id": "text", "given_delay_us": "bigint", "given_extra_us": "bigint"},
)
DELETE = Statement(
    "participants.delete",
    "Delete a participant without submissions.",
    """
    DELETE FROM participants WHERE id = :id AND contest_id = :contest_id
      AND NOT EXISTS (SELECT 1 FROM contest_submissions WHERE participant_id = :id)
    """,
)

GROUPS_OF = Statement(
    "contest_groups.of_participants",
    "List the groups of the given participants.",
    """
    SELECT contest_group_members.group_id AS group_id, participant_id FROM {given}
    JOIN contest_group_members ON participant_id = given_id
    """,
    input_columns={"given_id": "text"},
)
UPSERT_GROUPS = Statement(
    "contest_groups.upsert",
    "Create groups of a contest, or change them.",
    """
    INSERT INTO contest_groups (id, contest_id, code, name, icpc_id, ranked, hidden, ordinal)
    SELECT given_id, given_contest_id, given_code, given_name, given_icpc_id, given_ranked, given_hidden, given_ordinal
    FROM {given} WHERE true
    ON CONFLICT (contest_id, code) DO UPDATE SET name = excluded.name, icpc_id = excluded.icpc_id,
        ranked = excluded.ranked, hidden = excluded.hidden, ordinal = excluded.ordinal
    """,
    input_columns={
        "given_id": "text",
        "given_contest_id": "text",
        "given_code": "text",
        "given_name": "text",
        "given_icpc_id": "text",
        "given_ranked": "boolean",
        "given_hidden": "boolean",
        "given_ordinal": "bigint",
    },
)
GROUPS = Statement(
    "contest_groups.list",
    "List the groups of a contest.",
    "SELECT {columns} FROM contest_groups WHERE contest_id = :contest_id ORDER BY ordinal, code",
    row=ContestGroupRow,
)
DELETE_GROUP = Statement(
    "contest_groups.delete",
    "Delete a group.",
    "DELETE FROM contest_groups WHERE id = :id AND contest_id = :contest_id",
)
JOIN_GROUPS = Statement(
    "contest_groups.join",
    "Add participants to groups.",
    """
    INSERT INTO contest_group_members (group_id, participant_id)
    SELECT given_group_id, given_participant_id FROM {given} WHERE true
    ON CONFLICT (group_id, participant_id) DO NOTHING
    """,
    input_columns={"given_group_id": "text", "given_participant_id": "text"},
)
LEAVE_GROUPS = Statement(
    "contest_groups.leave",
    "Remove participants from all their groups.",
    "DELETE FROM contest_group_members WHERE participant_id IN (SELECT given_id FROM {given})",
    input_columns={"given_id": "text"},
)
GROUP_MEMBERS = Statement(
    "contest_groups.members",
    "List which participants are in which groups of a contest.",
    """
    SELECT group_id, participant_id FROM contest_groups JOIN contest_group_members ON group_id = contest_groups.id
    WHERE contest_id = :contest_id
    """,
)


async def insert(tx: Tx, items: Sequence[NewParticipant]) -> None:
    """Create participants with their members; a duplicate is a Conflict that names the field."""
    if not items:
        return
    rows = [tuple(_value(getattr(item, name)) for name in _NEW) for item in items]
    await tx.execute(INSERT, rows)
    await _add_members(tx, [(item, sorted({*item.members, *_own(item)})) for item in items])


async def set_members(tx: Tx, participant: ParticipantRow, user_ids: Iterable[str]) -> None:
    """Replace the users of a participant."""
    await tx.execute(DELETE_MEMBERS, [(participant.id,)])
    await _add_members(tx, [(participant, sorted({*user_ids, *_own(participant)}))])


def _own(item: NewParticipant | ParticipantRow) -> list[str]:
    return [] if item.user_id is None else [item.user_id]


async def _add_members(tx: Tx, items: Sequence[tuple[NewParticipant | ParticipantRow, Sequence[str]]]) -> None:
    rows = [(item.contest_id, user_id, item.run_no, item.id) for item, user_ids in items for user_id in user_ids]
    if rows:
        await tx.execute(INSERT_MEMBERS, rows)


def _value(value: object) -> object:
    return str(value) if isinstance(value, str) else value


async def find(tx: Tx, participant_id: str) -> ParticipantRow:
    """Read a participant."""
    row = await fetch_one(tx, FIND, id=participant_id)
    if row is None:
        raise NotFound("participant", participant_id)
    return row


async def find_many(tx: Tx, participant_ids: Iterable[str]) -> list[ParticipantRow]:
    """Those of the participants that exist."""
    rows = [(item,) for item in participant_ids]
    return await tx.fetch(FIND_MANY, rows) if rows else []


async def find_by_codes(tx: Tx, contest_id: str, codes: Iterable[str]) -> dict[str, ParticipantRow]:
    """Find participants of a contest by code."""
    rows = await tx.fetch(FIND_BY_CODES, [(code,) for code in sorted(set(codes))], contest_id=contest_id)
    return {row.code: row for row in rows}


async def of_user(tx: Tx, contest_ids: Sequence[str], user_id: str) -> list[ParticipantRow]:
    """The participants that a user submits for in contests: the official run and virtual ones, the last run first."""
    return await tx.fetch(OF_USER, [(contest_id,) for contest_id in contest_ids], user_id=user_id)


async def contests_of_user(tx: Tx, user_id: str) -> dict[str, str]:
    """The contests that a user takes part in, with the latest participant of each."""
    return {row["contest_id"]: row["participant_id"] for row in await tx.fetch(CONTESTS_OF_USER, user_id=user_id)}


async def page(
    tx: Tx, contest_id: str, *, after: str = "", limit: int, kind: str | None = None, with_hidden: bool = True
) -> list[ParticipantRow]:
    """List participants by id; ``after`` is the last id of the previous page."""
    return await tx.fetch(
        PAGE, contest_id=contest_id, after=after, limit=limit, kind=kind, with_hidden=int(with_hidden)
    )


async def on_scoreboard(tx: Tx, contest_id: str) -> list[ScoreboardParticipant]:
    """All participants that have a row on the scoreboard."""
    return await tx.fetch(ON_SCOREBOARD, contest_id=contest_id)


async def members(tx: Tx, participant_ids: Sequence[str]) -> list[ParticipantMemberRow]:
    """The users of participants."""
    return await tx.fetch(MEMBERS, [(item,) for item in participant_ids]) if participant_ids else []


async def count_kinds(tx: Tx, contest_id: str) -> dict[str, int]:
    """The number of participants of each kind."""
    return {row["kind"]: row["count"] for row in await tx.fetch(COUNT_KINDS, contest_id=contest_id)}


async def update(tx: Tx, participant: ParticipantRow) -> None:
    """Write a participant if its version is unchanged; the caller refolds its cells."""
    changed = await tx.execute(
        UPDATE,
        id=participant.id,
        version=participant.version,
        code=participant.code,
        name=participant.name,
        kind=str(participant.kind),
        organization_id=participant.organization_id,
        label=participant.label,
        location=participant.location,
        hidden=participant.hidden,
        disqualified_at=participant.disqualified_at,
        started_at=participant.started_at,
        delay_us=participant.delay_us,
        extra_us=participant.extra_us,
        penalty_adjust_sec=participant.penalty_adjust_sec,
    )
    if not changed:
        raise VersionConflict("The participant was changed concurrently; read it again and retry.")


async def start(tx: Tx, participant_id: str) -> ParticipantRow:
    """Start the own window; a second start is a Conflict."""
    row = await fetch_one(tx, START, id=participant_id)
    if row is None:
        await find(tx, participant_id)
        raise Conflict("The window has started already.")
    return row


async def set_clocks(tx: Tx, contest_id: str, rows: Sequence[tuple[str, int | None, int | None]]) -> int:
    """Set delay and extra time: participant, delay, extra; None keeps a value. Return how many were found."""
    return await tx.execute(SET_CLOCKS, sorted(rows), contest_id=contest_id) if rows else 0


async def delete(tx: Tx, contest_id: str, participant_id: str) -> None:
    """Delete a participant; one with submissions can only be disqualified."""
    if not await tx.execute(DELETE, id=participant_id, contest_id=contest_id):
        await find(tx, participant_id)
        raise Conflict("The participant has submissions; disqualify it instead.")


async def upsert_groups(tx: Tx, groups: Sequence[ContestGroupRow]) -> None:
    """Create groups, or change those with the same code."""
    if groups:
        await tx.execute(UPSERT_GROUPS, [astuple(item) for item in groups])


async def groups(tx: Tx, contest_id: str) -> list[ContestGroupRow]:
    """The groups of a contest."""
    return await tx.fetch(GROUPS, contest_id=contest_id)


async def groups_of(tx: Tx, participant_ids: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (group, participant) of the given participants."""
    rows = await tx.fetch(GROUPS_OF, [(item,) for item in participant_ids]) if participant_ids else []
    return [(row["group_id"], row["participant_id"]) for row in rows]


async def delete_group(tx: Tx, contest_id: str, group_id: str) -> None:
    """Delete a group; its participants stay."""
    if not await tx.execute(DELETE_GROUP, id=group_id, contest_id=contest_id):
        raise NotFound("group", group_id)


async def set_groups(tx: Tx, participant_ids: Sequence[str], pairs: Sequence[tuple[str, str]]) -> None:
    """Replace the groups of participants by pairs (group, participant)."""
    if participant_ids:
        await tx.execute(LEAVE_GROUPS, [(item,) for item in participant_ids])
    if pairs:
        await tx.execute(JOIN_GROUPS, sorted(pairs))


async def group_members(tx: Tx, contest_id: str) -> list[tuple[str, str]]:
    """All pairs (group, participant) of a contest."""
    rows = await tx.fetch(GROUP_MEMBERS, contest_id=contest_id)
    return [(row["group_id"], row["participant_id"]) for row in rows]
