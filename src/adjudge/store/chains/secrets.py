"""Named secrets of chains: encrypted values that cannot be read back. ``chains.secrets`` encrypts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from adjudge.domain.errors import NotFound
from adjudge.store.accounts.users import actor_name
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret without its value."""

    name: str
    created_by: str | None
    created_at: int
    updated_by: str | None
    updated_at: int


class _EncryptedSecret(NamedTuple):
    name: str
    ciphertext: str


PUT = Statement(
    "chain_secrets.put",
    "Insert a secret, or replace its value.",
    """
    INSERT INTO chain_secrets (name, ciphertext, created_by, created_at, updated_by, updated_at)
    VALUES (:name, :ciphertext, :actor, {now}, :actor, {now})
    ON CONFLICT (name) DO UPDATE SET ciphertext = excluded.ciphertext, updated_by = excluded.updated_by,
        updated_at = excluded.updated_at
    """,
)
LIST = Statement(
    "chain_secrets.list",
    "List the names of secrets, never their values.",
    "SELECT {columns} FROM chain_secrets ORDER BY name",
    row=SecretName,
    columns={"created_by": actor_name("created_by"), "updated_by": actor_name("updated_by")},
)
READ = Statement(
    "chain_secrets.read",
    "Read encrypted secrets for a node that uses them.",
    "SELECT {columns} FROM {given} JOIN chain_secrets ON name = given_name",
    input_columns={"given_name": "text"},
    row=_EncryptedSecret,
)
READ_ALL = Statement(
    "chain_secrets.read_all",
    "Read all encrypted secrets to encrypt them with another key.",
    "SELECT {columns} FROM chain_secrets ORDER BY name",
    row=_EncryptedSecret,
)
REPLACE = Statement(
    "chain_secrets.replace",
    "Encrypt a secret with another key, unless it has been changed meanwhile.",
    "UPDATE chain_secrets SET ciphertext = :fresh WHERE name = :name AND ciphertext = :stale",
)
DELETE = Statement("chain_secrets.delete", "Delete a secret.", "DELETE FROM chain_secrets WHERE name = :name")


async def put(tx: Tx, name: str, ciphertext: str, *, actor: str) -> None:
    await tx.execute(PUT, name=name, ciphertext=ciphertext, actor=actor)


async def names(tx: Tx) -> list[SecretName]:
    """All secrets, without their values."""
    return await tx.fetch(LIST)


async def read(tx: Tx, wanted: Collection[str]) -> dict[str, str]:
    """Encrypted values by name; missing ones are left out."""
    return dict(await tx.fetch(READ, [(name,) for name in sorted(wanted)])) if wanted else {}


async def read_all(tx: Tx) -> dict[str, str]:
    """All encrypted values by name."""
    return dict(await tx.fetch(READ_ALL))


async def replace(tx: Tx, name: str, *, stale: str, fresh: str) -> bool:
    """Write a re-encrypted value; False if it was changed in the meantime."""
    return bool(await tx.execute(REPLACE, name=name, stale=stale, fresh=fresh))


async def delete(tx: Tx, name: str) -> None:
    if not await tx.execute(DELETE, name=name):
        raise NotFound("secret", name)
