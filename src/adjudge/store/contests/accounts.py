"""Accounts that were made for a contest: networks, expiry, disabling, passwords. All writes take any number of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.contests.models import ContestAccountRow, LoginRule
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class ContestAccountDetail:
    """An account that was made for a contest, with the participant that it submits for."""

    user_id: str
    user_name: str
    display_name: str | None
    address_ranges: tuple[str, ...] | None
    disabled_at: int | None
    expires_at: int | None
    has_role: bool
    """Whether it has a role in the contest: such an account is not disabled with the others."""
    has_site_role: bool
    """Whether it is more than a contestant in the installation: organisers of a contest do not decide on it."""
    participant_code: str | None
    participant_name: str | None
    location: str | None


@dataclass(frozen=True, slots=True)
class RestrictedContest:
    """A contest that restricts the addresses of its participants, for one of them."""

    contest_id: str
    participant_id: str


_DETAIL = {
    "user_id": "users.id",
    "user_name": "users.name",
    "display_name": "users.display_name",
    "has_role": "EXISTS (SELECT 1 FROM contest_roles WHERE contest_roles.contest_id = contest_accounts.contest_id "
    "AND contest_roles.user_id = users.id)",
    "has_site_role": "users.role <> 'contestant'",
    "participant_code": "participants.code",
    "participant_name": "participants.name",
    "location": "participants.location",
}
_JOINED = """
    JOIN users ON users.id = contest_accounts.user_id
    LEFT JOIN participant_members ON participant_members.user_id = users.id
         AND participant_members.contest_id = contest_accounts.contest_id AND participant_members.run_no = 0
    LEFT JOIN participants ON participants.id = participant_members.participant_id
"""

UPSERT = Statement(
    "contest_accounts.upsert",
    "Bind accounts to a contest.",
    """
    INSERT INTO contest_accounts (user_id, contest_id, address_ranges, temporary, expires_at, created_at)
    SELECT given_user_id, :contest_id, given_address_ranges, given_temporary, given_expires_at, {now}
    FROM {given} WHERE true
    ON CONFLICT (user_id, contest_id) DO UPDATE SET address_ranges = excluded.address_ranges,
        temporary = excluded.temporary, expires_at = excluded.expires_at
    """,
    input_columns={
        "given_user_id": "text",
        "given_address_ranges": "jsonb",
        "given_temporary": "boolean",
        "given_expires_at": "bigint",
    },
)
LOGIN_RULES = Statement(
    "contest_accounts.login_rules",
    "Read the networks, the expiry and the state of an account that was made for a contest.",
    "SELECT {columns} FROM contest_accounts WHERE user_id = :user_id AND temporary",
    row=LoginRule,
    columns={
        "has_expired": "COALESCE(expires_at <= {now}, FALSE)",
        "is_disabled": "disabled_at IS NOT NULL",
    },
)
RESTRICTED = Statement(
    "contest_accounts.restricted_contests",
    "List the published contests that restrict the addresses of a user, who takes part and has no role in them.",
    """
    SELECT contests.id AS contest_id, participants.id AS participant_id FROM participant_members
    JOIN participants ON participants.id = participant_members.participant_id
    JOIN contests ON contests.id = participants.contest_id
    WHERE participant_members.user_id = :user_id AND participants.kind IN ('official', 'unofficial')
      AND contests.state = 'published' AND contests.address_ranges IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM contest_roles
                      WHERE contest_roles.contest_id = contests.id AND contest_roles.user_id = :user_id)
    ORDER BY contests.id
    """,
)
PAGE = Statement(
    "contest_accounts.page",
    "List the accounts that were made for a contest by user name, keyset-paginated.",
    f"""
    SELECT {{columns:contest_accounts}} FROM contest_accounts {_JOINED}
    WHERE contest_accounts.contest_id = :contest_id AND temporary AND users.name > :after
    ORDER BY users.name LIMIT :limit
    """,
    row=ContestAccountDetail,
    columns=_DETAIL,
)
FIND = Statement(
    "contest_accounts.find_by_names",
    "Find accounts that were made for a contest by user name.",
    f"""
    SELECT {{columns:contest_accounts}} FROM {{given}} JOIN users AS named ON named.name = given_name
    JOIN contest_accounts ON contest_accounts.user_id = named.id {_JOINED}
    WHERE contest_accounts.contest_id = :contest_id AND temporary ORDER BY users.name
    """,
    input_columns={"given_name": "text"},
    row=ContestAccountDetail,
    columns=_DETAIL,
)
SET_DISABLED = Statement(
    "contest_accounts.set_disabled",
    "Disable or enable accounts that were made for a contest.",
    """
    UPDATE contest_accounts SET disabled_at = CASE WHEN CAST(:disabled AS bigint) = 1 THEN {now} END
    FROM {given} WHERE user_id = given_id AND contest_id = :contest_id AND temporary
      AND (disabled_at IS NULL) = (CAST(:disabled AS bigint) = 1)
    """,
    input_columns={"given_id": "text"},
)
SET_EXPIRY = Statement(
    "contest_accounts.set_expiry",
    "Set when the accounts that were made for a contest expire.",
    "UPDATE contest_accounts SET expires_at = :expires_at WHERE contest_id = :contest_id AND temporary",
)
REVOKE_SESSIONS = Statement(
    "contest_accounts.revoke_sessions",
    "Revoke all sessions of several users.",
    "UPDATE sessions SET revoked_at = {now} FROM {given} WHERE user_id = given_id AND revoked_at IS NULL",
    input_columns={"given_id": "text"},
)
REVOKE_TOKENS = Statement(
    "contest_accounts.revoke_tokens",
    "Revoke all API tokens of several users.",
    "UPDATE api_tokens SET revoked_at = {now} FROM {given} WHERE user_id = given_id AND revoked_at IS NULL",
    input_columns={"given_id": "text"},
)


async def bind_accounts(tx: Tx, contest_id: str, accounts: Sequence[ContestAccountRow]) -> None:
    """Bind accounts to a contest and to networks."""
    rows = [
        (
            item.user_id,
            None if item.address_ranges is None else json.dumps(item.address_ranges),
            item.temporary,
            item.expires_at,
        )
        for item in accounts
    ]
    if rows:
        await tx.execute(UPSERT, rows, contest_id=contest_id)


async def login_rules(tx: Tx, user_id: str) -> list[LoginRule]:
    """What restricts the logins of an account that was made for a contest; other accounts have none."""
    return await tx.fetch(LOGIN_RULES, user_id=user_id)


async def restricted_contests(tx: Tx, user_id: str) -> list[RestrictedContest]:
    """The published contests with networks in which a user takes part and has no role."""
    rows = await tx.fetch(RESTRICTED, user_id=user_id)
    return [RestrictedContest(row["contest_id"], row["participant_id"]) for row in rows]


async def page(tx: Tx, contest_id: str, *, after: str = "", limit: int) -> list[ContestAccountDetail]:
    """Accounts by user name; ``after`` is the last name of the previous page."""
    return await tx.fetch(PAGE, contest_id=contest_id, after=after, limit=limit)


async def find_by_names(tx: Tx, contest_id: str, names: Sequence[str]) -> list[ContestAccountDetail]:
    """Those of the accounts that were made for the contest."""
    rows = [(name,) for name in sorted(set(names))]
    return await tx.fetch(FIND, rows, contest_id=contest_id) if rows else []


async def set_disabled(tx: Tx, contest_id: str, user_ids: Sequence[str], *, disabled: bool) -> int:
    """Disable or enable accounts; return how many changed."""
    rows = [(item,) for item in sorted(user_ids)]
    return await tx.execute(SET_DISABLED, rows, contest_id=contest_id, disabled=int(disabled)) if rows else 0


async def set_expiry(tx: Tx, contest_id: str, expires_at: int | None) -> None:
    """Set when the accounts of a contest expire; None: the end of the contest is not known."""
    await tx.execute(SET_EXPIRY, contest_id=contest_id, expires_at=expires_at)


async def revoke_credentials(tx: Tx, user_ids: Sequence[str]) -> None:
    """Revoke all sessions and API tokens of users."""
    rows = [(item,) for item in sorted(user_ids)]
    if rows:
        await tx.execute(REVOKE_SESSIONS, rows)
        await tx.execute(REVOKE_TOKENS, rows)
