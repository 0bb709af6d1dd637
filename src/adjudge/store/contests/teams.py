"""Organisations and teams, which can take part in several contests. Writes take any number of rows, for imports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from adjudge.domain.errors import NotFound
from adjudge.store.contests.models import OrganizationRow, TeamMemberRow, TeamRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement

UPSERT_ORGANIZATIONS = Statement(
    "organizations.upsert",
    "Create organisations, or change those with the same code.",
    """
    INSERT INTO organizations (id, code, name, formal_name, country, icpc_id, logo_digest, created_at, updated_at)
    SELECT given_id, given_code, given_name, given_formal_name, given_country, given_icpc_id, given_logo_digest, {now},
           {now}
    FROM {given} WHERE true
    ON CONFLICT (code) DO UPDATE SET name = excluded.name, formal_name = excluded.formal_name,
        country = excluded.country, icpc_id = excluded.icpc_id,
        logo_digest = COALESCE(excluded.logo_digest, organizations.logo_digest),
        version = organizations.version + 1, updated_at = {now}
    RETURNING {columns}
    """,
    input_columns={
        "given_id": "text",
        "given_code": "text",
        "given_name": "text",
        "given_formal_name": "text",
        "given_country": "text",
        "given_icpc_id": "text",
        "given_logo_digest": "text",
    },
    row=OrganizationRow,
)
ORGANIZATIONS = Statement(
    "organizations.page",
    "List organisations by code, keyset-paginated.",
    "SELECT {columns} FROM organizations WHERE code > :after ORDER BY code LIMIT :limit",
    row=OrganizationRow,
)
FIND_ORGANIZATIONS = Statement(
    "organizations.find_by_codes",
    "Find organisations by code.",
    "SELECT {columns:organizations} FROM {given} JOIN organizations ON organizations.code = given_code",
    input_columns={"given_code": "text"},
    row=OrganizationRow,
)
ORGANIZATIONS_BY_ID = Statement(
    "organizations.find_by_ids",
    "Read organisations.",
    "SELECT {columns:organizations} FROM {given} JOIN organizations ON organizations.id = given_id",
    input_columns={"given_id": "text"},
    row=OrganizationRow,
)
ORGANIZATIONS_OF_CONTEST = Statement(
    "organizations.of_contest",
    "List the organisations that take part in a contest.",
    """
    SELECT {columns} FROM organizations
    WHERE id IN (SELECT organization_id FROM participants WHERE contest_id = :contest_id) ORDER BY code
    """,
    row=OrganizationRow,
)
UPSERT_TEAMS = Statement(
    "teams.upsert",
    "Create teams, or change those with the same code.",
    """
    INSERT INTO teams (id, code, name, icpc_id, organization_id, photo_digest, created_by, created_at, updated_at)
    SELECT given_id, given_code, given_name, given_icpc_id, given_organization_id, given_photo_digest,
           given_created_by, {now}, {now}
    FROM {given} WHERE true
    ON CONFLICT (code) DO UPDATE SET name = excluded.name, icpc_id = excluded.icpc_id,
        organization_id = excluded.organization_id,
        photo_digest = COALESCE(excluded.photo_digest, teams.photo_digest), version = teams.version + 1,
        updated_at = {now}
    RETURNING {columns}
    """,
    input_columns={
        "given_id": "text",
        "given_code": "text",
        "given_name": "text",
        "given_icpc_id": "text",
        "given_organization_id": "text",
        "given_photo_digest": "text",
        "given_created_by": "text",
    },
    row=TeamRow,
)
FIND_TEAM = Statement("teams.find", "Read a team.", "SELECT {columns} FROM teams WHERE id = :id", row=TeamRow)
FIND_TEAMS = Statement(
    "teams.find_by_codes",
    "Find teams by code.",
    "SELECT {columns:teams} FROM {given} JOIN teams ON teams.code = given_code",
    input_columns={"given_code": "text"},
    row=TeamRow,
)
TEAMS_OF_CONTEST = Statement(
    "teams.of_contest",
    "List the teams that take part in a contest.",
    "SELECT {columns} FROM teams WHERE id IN (SELECT team_id FROM participants WHERE contest_id = :contest_id)",
    row=TeamRow,
)
TEAMS_OF_USER = Statement(
    "teams.of_user",
    "List the teams of a user.",
    """
    SELECT {columns:teams} FROM team_members JOIN teams ON teams.id = team_id
    WHERE team_members.user_id = :user_id ORDER BY teams.code
    """,
    row=TeamRow,
)
SET_PHOTO = Statement(
    "teams.set_photo",
    "Set or remove the photo of a team.",
    "UPDATE teams SET photo_digest = :digest, version = version + 1, updated_at = {now} WHERE id = :id",
)
WITH_PHOTO = Statement(
    "teams.with_photo",
    "List the participants of a contest whose teams have a photo.",
    """
    SELECT participants.id FROM participants JOIN teams ON teams.id = participants.team_id
    WHERE participants.contest_id = :contest_id AND teams.photo_digest IS NOT NULL
    """,
)
ADD_MEMBERS = Statement(
    "teams.add_members",
    "Add members to teams.",
    """
    INSERT INTO team_members (team_id, user_id, is_captain, created_at)
    SELECT given_team_id, given_user_id, given_is_captain, {now} FROM {given} WHERE true
    ON CONFLICT (team_id, user_id) DO UPDATE SET is_captain = excluded.is_captain
    """,
    input_columns={"given_team_id": "text", "given_user_id": "text", "given_is_captain": "boolean"},
)
REMOVE_MEMBER = Statement(
    "teams.remove_member",
    "Remove a member from a team.",
    "DELETE FROM team_members WHERE team_id = :team_id AND user_id = :user_id",
)
MEMBERS = Statement(
    "teams.members",
    "List the members of teams.",
    """
    SELECT {columns:team_members} FROM {given} JOIN team_members ON team_id = given_id
    JOIN users ON users.id = user_id ORDER BY users.name
    """,
    input_columns={"given_id": "text"},
    row=TeamMemberRow,
    columns={"user_name": "users.name"},
)


async def upsert_organizations(tx: Tx, items: Sequence[OrganizationRow]) -> dict[str, OrganizationRow]:
    """Create organisations, or change those with the same code; return all of them by code."""
    rows = await tx.fetch(UPSERT_ORGANIZATIONS, [astuple(item) for item in items]) if items else []
    return {row.code: row for row in rows}


async def find_organizations(tx: Tx, codes: Iterable[str]) -> dict[str, OrganizationRow]:
    """Find organisations by code."""
    rows = [(code,) for code in sorted(set(codes))]
    return {row.code: row for row in await tx.fetch(FIND_ORGANIZATIONS, rows)} if rows else {}


async def organizations(tx: Tx, *, after: str = "", limit: int) -> list[OrganizationRow]:
    """List organisations by code."""
    return await tx.fetch(ORGANIZATIONS, after=after, limit=limit)


async def organizations_by_id(tx: Tx, ids: Iterable[str]) -> dict[str, OrganizationRow]:
    """Organisations by id."""
    rows = [(item,) for item in sorted(set(ids))]
    return {row.id: row for row in await tx.fetch(ORGANIZATIONS_BY_ID, rows)} if rows else {}


async def organizations_of_contest(tx: Tx, contest_id: str) -> list[OrganizationRow]:
    """The organisations that take part in a contest."""
    return await tx.fetch(ORGANIZATIONS_OF_CONTEST, contest_id=contest_id)


async def upsert_teams(tx: Tx, items: Sequence[TeamRow]) -> dict[str, TeamRow]:
    """Create teams, or change those with the same code; return all of them by code."""
    rows = await tx.fetch(UPSERT_TEAMS, [astuple(item) for item in items]) if items else []
    return {row.code: row for row in rows}


async def find_team(tx: Tx, team_id: str) -> TeamRow:
    """Read a team."""
    row = await fetch_one(tx, FIND_TEAM, id=team_id)
    if row is None:
        raise NotFound("team", team_id)
    return row


async def set_photo(tx: Tx, team_id: str, digest: str | None) -> None:
    """Set the photo of a team, or remove it."""
    await tx.execute(SET_PHOTO, id=team_id, digest=digest)


async def participants_with_photo(tx: Tx, contest_id: str) -> set[str]:
    """The participants of a contest whose teams have a photo."""
    return {row["id"] for row in await tx.fetch(WITH_PHOTO, contest_id=contest_id)}


async def find_teams(tx: Tx, codes: Iterable[str]) -> dict[str, TeamRow]:
    """Find teams by code."""
    return {row.code: row for row in await tx.fetch(FIND_TEAMS, [(code,) for code in sorted(set(codes))])}


async def teams_of_contest(tx: Tx, contest_id: str) -> dict[str, TeamRow]:
    """The teams that take part in a contest, by id."""
    return {row.id: row for row in await tx.fetch(TEAMS_OF_CONTEST, contest_id=contest_id)}


async def teams_of_user(tx: Tx, user_id: str) -> list[TeamRow]:
    """The teams of a user."""
    return await tx.fetch(TEAMS_OF_USER, user_id=user_id)


async def add_members(tx: Tx, rows: Sequence[tuple[str, str, bool]]) -> None:
    """Add members: team, user, whether they are the captain."""
    if rows:
        await tx.execute(ADD_MEMBERS, sorted(rows))


async def remove_member(tx: Tx, team_id: str, user_id: str) -> None:
    """Remove a member."""
    if not await tx.execute(REMOVE_MEMBER, team_id=team_id, user_id=user_id):
        raise NotFound("member", user_id)


async def members(tx: Tx, team_ids: Sequence[str]) -> list[TeamMemberRow]:
    """The members of teams."""
    return await tx.fetch(MEMBERS, [(item,) for item in team_ids]) if team_ids else []
