"""Named secrets of chains: encrypted values that cannot be read back. ``chains.secrets`` encrypts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.store.accounts.users import actor_name
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

PUT = Statement(
    "chain_secrets.put",
    "Keep a secret, or give one that is there another value.",
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
    f"""
    SELECT name, {actor_name("created_by")} AS created_by, created_at,
           {actor_name("updated_by")} AS updated_by, updated_at
    FROM chain_secrets ORDER BY name
    """,
)
READ = Statement(
    "chain_secrets.read",
    "Read encrypted secrets for a node that uses them.",
    "SELECT name, ciphertext FROM {given} JOIN chain_secrets ON name = given_name",
    input_columns={"given_name": "text"},
)
READ_ALL = Statement(
    "chain_secrets.read_all",
    "Read all encrypted secrets to encrypt them with another key.",
    "SELECT name, ciphertext FROM chain_secrets ORDER BY name",
)
REPLACE = Statement(
    "chain_secrets.replace",
    "Encrypt a secret with another key, unless it has been changed meanwhile.",
    "UPDATE chain_secrets SET ciphertext = :fresh WHERE name = :name AND ciphertext = :stale",
)
DELETE = Statement("chain_secrets.delete", "Forget a secret.", "DELETE FROM chain_secrets WHERE name = :name")


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret without its value."""

    name: str
    created_by: str | None
    created_at: int
    updated_by: str | None
    updated_at: int


async def put(tx: Tx, name: str, ciphertext: str, *, actor: str) -> None:
    await tx.execute(PUT, name=name, ciphertext=ciphertext, actor=actor)


async def names(tx: Tx) -> list[SecretName]:
    """All secrets, without their values."""
    return [SecretName(*row) for row in await tx.fetch(LIST)]


async def read(tx: Tx, wanted: Collection[str]) -> dict[str, str]:
    """Encrypted values by name; missing ones are left out."""
    rows = await tx.fetch(READ, [(name,) for name in sorted(wanted)]) if wanted else []
    return {row["name"]: row["ciphertext"] for row in rows}


async def read_all(tx: Tx) -> dict[str, str]:
    """All encrypted values by name."""
    return {row["name"]: row["ciphertext"] for row in await tx.fetch(READ_ALL)}


async def replace(tx: Tx, name: str, *, stale: str, fresh: str) -> bool:
    """Write a re-encrypted value; False if it was changed in the meantime."""
    return bool(await tx.execute(REPLACE, name=name, stale=stale, fresh=fresh))


async def delete(tx: Tx, name: str) -> None:
    if not await tx.execute(DELETE, name=name):
        raise NotFound("secret", name)
