"""Users: people and the programs that act for them."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.store.driver import Tx
from adjudge.store.statement import Statement

INSERT = Statement(
    "users.insert",
    "Create a user.",
    """
    INSERT INTO users (id, name, email, password_hash, role, created_at, updated_at)
    VALUES (:id, :name, :email, :password_hash, :role, {now}, {now})
    """,
)


@dataclass(frozen=True, slots=True)
class NewUser:
    """A user to be created. A user with no password hash cannot log in with a password."""

    id: str
    name: str
    email: str | None = None
    password_hash: str | None = None
    role: str = "contestant"


async def add(tx: Tx, user: NewUser) -> None:
    """Create a user; a name or an e-mail address that is taken is a CONFLICT that says which."""
    await tx.execute(
        INSERT, id=user.id, name=user.name, email=user.email, password_hash=user.password_hash, role=user.role
    )
