"""Registration for contests: invitations, join codes of teams, and the list of participants with filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.contests.models import ContestInvitationRow, ParticipantRow
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class ParticipantFilter:
    """Which participants are listed; None and the empty text match all."""

    kind: str | None = None
    group_id: str | None = None
    organization: str = ""
    """Code of an organisation."""
    search: str = ""
    """Part of the code or name."""
    with_hidden: bool = False
    """Also hidden participants, those of hidden groups, testers, virtual runs and practice."""


FIND_INVITATION = Statement(
    "contest_invitations.find",
    "Find an invitation that a user may use now.",
    """
    SELECT {columns} FROM contest_invitations
    WHERE code_hash = :code_hash AND contest_id = :contest_id AND uses < max_uses AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > {now}) AND (user_id IS NULL OR user_id = :user_id)
    """,
    row=ContestInvitationRow,
)
SET_JOIN_CODE = Statement(
    "teams.set_join_code",
    "Replace the join code of a team.",
    "UPDATE teams SET join_code_hash = :join_code_hash, version = version + 1, updated_at = {now} WHERE id = :id",
)
FIND_BY_JOIN_CODE = Statement(
    "participants.find_by_join_code",
    "Find the team with a join code that takes part in a contest.",
    """
    SELECT {columns:participants} FROM participants JOIN teams ON teams.id = participants.team_id
    WHERE participants.contest_id = :contest_id AND teams.join_code_hash = :join_code_hash
    """,
    row=ParticipantRow,
)
LIST = Statement(
    "participants.list",
    "List the participants of a contest with filters by id, keyset-paginated.",
    """
    SELECT {columns} FROM participants WHERE contest_id = :contest_id AND id > :after
      AND (CAST(:kind AS text) IS NULL OR kind = :kind)
      AND (CAST(:group_id AS text) IS NULL
           OR id IN (SELECT participant_id FROM contest_group_members WHERE group_id = :group_id))
      AND (CAST(:organization AS text) = ''
           OR organization_id IN (SELECT organizations.id FROM organizations WHERE organizations.code = :organization))
      AND (lower(name) LIKE :pattern ESCAPE '!' OR lower(code) LIKE :pattern ESCAPE '!')
      AND (CAST(:with_hidden AS bigint) = 1 OR (NOT hidden AND kind IN ('official', 'unofficial')
           AND id NOT IN (SELECT participant_id FROM contest_group_members JOIN contest_groups
                          ON contest_groups.id = group_id WHERE contest_id = :contest_id AND contest_groups.hidden)))
    ORDER BY id LIMIT :limit
    """,
    row=ParticipantRow,
)


async def find_invitation(tx: Tx, contest_id: str, code_hash: str, user_id: str | None) -> ContestInvitationRow | None:
    """An invitation that the user may use now; it is not used."""
    return await fetch_one(tx, FIND_INVITATION, contest_id=contest_id, code_hash=code_hash, user_id=user_id or "")


async def set_join_code(tx: Tx, team_id: str, join_code_hash: str) -> None:
    """Replace the join code of a team; the former one is invalid."""
    await tx.execute(SET_JOIN_CODE, id=team_id, join_code_hash=join_code_hash)


async def find_by_join_code(tx: Tx, contest_id: str, join_code_hash: str) -> ParticipantRow | None:
    """The team with this join code, if it takes part in the contest."""
    return await fetch_one(tx, FIND_BY_JOIN_CODE, contest_id=contest_id, join_code_hash=join_code_hash)


async def list_participants(
    tx: Tx, contest_id: str, wanted: ParticipantFilter, *, after: str, limit: int
) -> Sequence[ParticipantRow]:
    """List participants by id; ``after`` is the last id of the previous page."""
    escaped = wanted.search.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return await tx.fetch(
        LIST,
        contest_id=contest_id,
        after=after,
        limit=limit,
        kind=wanted.kind,
        group_id=wanted.group_id,
        organization=wanted.organization,
        pattern=f"%{escaped}%",
        with_hidden=int(wanted.with_hidden),
    )
