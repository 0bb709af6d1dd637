"""Invitations: codes that let somebody make an account. Only a code's digest is kept."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Role
from adjudge.store.accounts.api_tokens import digest_secret
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Row, Statement

PREFIX = "inv_"

INSERT = Statement(
    "invitations.insert",
    "Insert an invitation with the digest of its code.",
    """
    INSERT INTO invitations (id, code_hash, role, note, max_uses, created_by, created_at, expires_at)
    VALUES (:id, :code_hash, :role, :note, :max_uses, :created_by, {now}, {now} + CAST(:life_us AS bigint))
    """,
)

REDEEM = Statement(
    "invitations.redeem",
    "Use a valid code once; the last use is granted to one caller only.",
    """
    UPDATE invitations SET uses = uses + 1
    WHERE code_hash = :code_hash AND revoked_at IS NULL AND uses < max_uses
      AND (expires_at IS NULL OR expires_at > {now})
    RETURNING id, role
    """,
)

PAGE = Statement(
    "invitations.page",
    "List invitations, newest first, keyset-paginated.",
    """
    SELECT id, role, note, max_uses, uses, created_by, created_at, expires_at, revoked_at FROM invitations
    WHERE id < :before ORDER BY id DESC LIMIT :limit
    """,
)

REVOKE = Statement(
    "invitations.revoke",
    "Revoke an invitation.",
    "UPDATE invitations SET revoked_at = {now} WHERE id = :id AND revoked_at IS NULL",
)


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """An invitation to be made; ``code`` is shown once."""

    id: str
    code: str
    created_by: str
    role: Role = Role.CONTESTANT
    note: str | None = None
    max_uses: int = 1
    ttl_us: int | None = None


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """What admins see of an invitation."""

    id: str
    role: str
    note: str | None
    max_uses: int
    uses: int
    created_by: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


def new_code() -> str:
    """Make a code that nobody can guess and that fits into a mail."""
    return PREFIX + secrets.token_urlsafe(18)


async def insert(tx: Tx, invitation: NewInvitation) -> None:
    """Make an invitation."""
    await tx.execute(
        INSERT,
        id=invitation.id,
        code_hash=digest_secret(invitation.code),
        role=invitation.role.value,
        note=invitation.note,
        max_uses=invitation.max_uses,
        created_by=invitation.created_by,
        life_us=invitation.ttl_us,
    )


async def redeem(tx: Tx, code: str) -> tuple[str, Role] | None:
    """Use a code: the invitation's id and the role that it gives, or nothing if it does not count."""
    row = await fetch_one(tx, REDEEM, code_hash=digest_secret(code))
    return None if row is None else (row["id"], Role(row["role"]))


async def page(tx: Tx, *, before: str, limit: int) -> list[InvitationRow]:
    """List invitations: ``before`` is the last id of the page before, or something greater than all."""
    return [_invitation(row) for row in await tx.fetch(PAGE, before=before, limit=limit)]


async def revoke(tx: Tx, invitation_id: str) -> None:
    """Let a code count no more."""
    if not await tx.execute(REVOKE, id=invitation_id):
        raise NotFound("invitation", invitation_id)


def _invitation(row: Row) -> InvitationRow:
    return InvitationRow(*(row[name] for name in InvitationRow.__slots__))
