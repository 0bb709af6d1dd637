"""Imports of teams and accounts: reads and writes of any number of rows, each in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """A user with the name of an imported account."""

    user_id: str
    name: str
    is_temporary: bool
    """Whether it was made for this contest."""
    participant_id: str | None
    """For whom it submits in this contest."""


ACCOUNTS = Statement(
    "team_import.accounts",
    "Find users by name, whether they were made for a contest, and for whom they submit in it.",
    """
    SELECT users.id AS user_id, users.name AS name,
           COALESCE(contest_accounts.temporary AND users.role = 'contestant', FALSE) AS is_temporary,
           participant_members.participant_id AS participant_id
    FROM {given} JOIN users ON users.name = given_name
    LEFT JOIN contest_accounts ON contest_accounts.user_id = users.id AND contest_accounts.contest_id = :contest_id
    LEFT JOIN participant_members ON participant_members.user_id = users.id
         AND participant_members.contest_id = :contest_id AND participant_members.run_no = 0
    """,
    input_columns={"given_name": "text"},
)
UPDATE_PARTICIPANTS = Statement(
    "team_import.update_participants",
    "Change the name, label, organisation and visibility of participants.",
    """
    UPDATE participants SET name = given_name, label = given_label, organization_id = given_organization_id,
        hidden = given_hidden, version = version + 1, updated_at = {now}
    FROM {given} WHERE id = given_id AND contest_id = :contest_id
    """,
    input_columns={
        "given_id": "text",
        "given_name": "text",
        "given_label": "text",
        "given_organization_id": "text",
        "given_hidden": "boolean",
    },
)
ADD_MEMBERS = Statement(
    "team_import.add_members",
    "Add users to participants of a contest; those who are there already stay.",
    """
    INSERT INTO participant_members (contest_id, user_id, run_no, participant_id)
    SELECT :contest_id, given_user_id, 0, given_participant_id FROM {given} WHERE true
    ON CONFLICT (contest_id, user_id, run_no) DO NOTHING
    """,
    input_columns={"given_user_id": "text", "given_participant_id": "text"},
)
INSERT_USERS = Statement(
    "team_import.insert_users",
    "Create contestants with their password hashes, if they have passwords.",
    """
    INSERT INTO users (id, name, display_name, password_hash, must_change_password, role, created_at, updated_at)
    SELECT given_id, given_name, given_display_name, given_password_hash, FALSE, 'contestant', {now}, {now} FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_name": "text",
        "given_display_name": "text",
        "given_password_hash": "text",
    },
)
SET_PASSWORDS = Statement(
    "team_import.set_passwords",
    "Replace the password hashes of accounts that were made for a contest.",
    """
    UPDATE users SET password_hash = given_password_hash, must_change_password = FALSE, updated_at = {now}
    FROM {given} WHERE id = given_user_id
      AND id IN (SELECT user_id FROM contest_accounts WHERE contest_id = :contest_id AND temporary)
      AND role = 'contestant'
    """,
    input_columns={"given_user_id": "text", "given_password_hash": "text"},
)


async def find_accounts(tx: Tx, contest_id: str, names: Sequence[str]) -> dict[str, KnownAccount]:
    """Users by name, with what they are in the contest."""
    rows = await tx.fetch(ACCOUNTS, [(name,) for name in sorted(set(names))], contest_id=contest_id) if names else []
    return {
        row["name"]: KnownAccount(row["user_id"], row["name"], bool(row["is_temporary"]), row["participant_id"])
        for row in rows
    }


async def update_participants(
    tx: Tx, contest_id: str, rows: Sequence[tuple[str, str, str | None, str | None, bool]]
) -> None:
    """Change participants: id, name, label, organisation, whether hidden."""
    if rows:
        await tx.execute(UPDATE_PARTICIPANTS, sorted(rows, key=lambda row: str(row[0])), contest_id=contest_id)


async def add_members(tx: Tx, contest_id: str, rows: Sequence[tuple[str, str]]) -> None:
    """Add users to participants: user, participant."""
    if rows:
        await tx.execute(ADD_MEMBERS, sorted(rows), contest_id=contest_id)


async def insert_users(tx: Tx, rows: Sequence[tuple[str, str, str, str | None]]) -> None:
    """Create contestants: id, name, display name, password hash or None. A name that is taken is a Conflict."""
    if rows:
        await tx.execute(INSERT_USERS, rows)


async def set_passwords(tx: Tx, contest_id: str, rows: Sequence[tuple[str, str]]) -> None:
    """Replace password hashes (user, hash) of accounts that were made for the contest; others keep theirs."""
    if rows:
        await tx.execute(SET_PASSWORDS, sorted(rows), contest_id=contest_id)
