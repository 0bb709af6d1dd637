"""Chain definitions: named, versioned, enabled or disabled. Every version is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adjudge.domain.authority import Authority, authority_to_json
from adjudge.domain.errors import ChainNameTaken, VersionConflict
from adjudge.domain.ids import IdFactory, new_id
from adjudge.store.accounts.users import actor_name
from adjudge.store.chains.models import ChainPage, ChainRow, ChainVersionRow
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement
from adjudge.store.ops import audit_log

_WITHOUT_DAG = {"dag": "NULL"}

INSERT = Statement(
    "chains.insert",
    "Insert a chain.",
    """
    INSERT INTO chains (id, name, description, enabled, dag, authority, created_at, updated_at)
    SELECT given_id, given_name, given_description, given_enabled, given_dag, given_authority, {now}, {now} FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_name": "text",
        "given_description": "text",
        "given_enabled": "boolean",
        "given_dag": "jsonb",
        "given_authority": "jsonb",
    },
)

UPDATE = Statement(
    "chains.update",
    "Update a chain if its version is unchanged.",
    """
    UPDATE chains SET name = given_name, description = given_description, dag = given_dag, version = version + 1,
        authority = given_authority, updated_at = {now}
    FROM {given} WHERE id = given_id AND version = given_version
    """,
    input_columns={
        "given_id": "text",
        "given_version": "bigint",
        "given_name": "text",
        "given_description": "text",
        "given_dag": "jsonb",
        "given_authority": "jsonb",
    },
)

VOUCH = Statement(
    "chains.vouch",
    "Record the authority of a chain that is saved unchanged.",
    "UPDATE chains SET authority = given_authority FROM {given} WHERE id = given_id",
    input_columns={"given_id": "text", "given_authority": "jsonb"},
)

INSERT_VERSION = Statement(
    "chains.insert_version",
    "Insert a version of a chain.",
    """
    INSERT INTO chain_versions (chain_id, version, name, description, dag, actor, created_at)
    SELECT id, version, name, description, dag, CAST(:actor AS text), {now} FROM chains WHERE id = :chain_id
    """,
)

SET_ENABLED = Statement(
    "chains.set_enabled",
    "Enable or disable a chain; its version is unchanged.",
    "UPDATE chains SET enabled = :enabled, updated_at = {now} WHERE id = :chain_id AND enabled <> :enabled",
)

FIND = Statement("chains.find", "Read a chain.", "SELECT {columns} FROM chains WHERE id = :chain_id", row=ChainRow)

FIND_SUMMARY = Statement(
    "chains.find_summary",
    "Read a chain without its DAG.",
    "SELECT {columns} FROM chains WHERE id = :chain_id",
    row=ChainRow,
    columns=_WITHOUT_DAG,
)

FIND_BY_NAME = Statement(
    "chains.find_by_name", "Read a chain by its name.", "SELECT {columns} FROM chains WHERE name = :name", row=ChainRow
)

_MATCHES = """
    (CAST(:keyword AS text) = '' OR lower(name) LIKE :pattern ESCAPE '!'
        OR lower(COALESCE(description, '')) LIKE :pattern ESCAPE '!')
    AND (CAST(:enabled AS text) = 'any' OR enabled = (CAST(:enabled AS text) = 'true'))
    """

COUNT = Statement(
    "chains.count", "Count chains by keyword and enabled flag.", f"SELECT count(*) AS n FROM chains WHERE {_MATCHES}"
)

PAGE_AFTER = Statement(
    "chains.page_after",
    "List chains by keyword and enabled flag, keyset-paginated by name.",
    f"SELECT {{columns}} FROM chains WHERE {_MATCHES} AND name > :after ORDER BY name LIMIT :limit",
    row=ChainRow,
    columns=_WITHOUT_DAG,
)

PAGE_NUMBER = Statement(
    "chains.page_number",
    "List chains by keyword and enabled flag, by page number.",
    f"SELECT {{columns}} FROM chains WHERE {_MATCHES} ORDER BY name LIMIT :limit OFFSET :skipped",
    row=ChainRow,
    columns=_WITHOUT_DAG,
)

LIST_VERSIONS = Statement(
    "chains.list_versions",
    "List the versions of a chain, newest first.",
    """
    SELECT {columns} FROM chain_versions
    WHERE chain_id = :chain_id AND version < :before ORDER BY version DESC LIMIT :limit
    """,
    row=ChainVersionRow,
    columns={"actor": actor_name("actor")},
)

SELECT_DAG = Statement(
    "chains.select_dag",
    "Read the DAG of a version of a chain.",
    "SELECT dag FROM chain_versions WHERE chain_id = :chain_id AND version = :version",
)

_NO_BOUND = 2**62


async def create(
    tx: Tx,
    *,
    name: str,
    dag: Mapping[str, Any],
    actor: str,
    description: str | None = None,
    enabled: bool = True,
    authority: Authority | None = None,
    new_id: IdFactory = new_id,
) -> ChainRow:
    """Create a chain with a validated DAG; an existing name is refused."""
    chain_id = new_id()
    await _refuse_taken_name(tx, chain_id, name)
    await tx.execute(INSERT, [(chain_id, name, description, enabled, json.dumps(dag), authority_to_json(authority))])
    await tx.execute(INSERT_VERSION, chain_id=chain_id, actor=actor)
    await audit_log.record(
        tx, actor=actor, action="create", object_kind="chain", objects={chain_id: {"name": name}}, reason=""
    )
    return await find(tx, chain_id)


async def update(
    tx: Tx,
    chain_id: str,
    *,
    version: int,
    name: str,
    dag: Mapping[str, Any],
    actor: str,
    description: str | None = None,
    authority: Authority | None = None,
) -> ChainRow:
    """Change a chain, with a validated DAG; an outdated version is refused (``VersionConflict``)."""
    await _refuse_taken_name(tx, chain_id, name)
    changed = await tx.execute(
        UPDATE, [(chain_id, version, name, description, json.dumps(dag), authority_to_json(authority))]
    )
    if not changed:
        current = await find(tx, chain_id)
        raise VersionConflict(
            f"Chain {chain_id!r} is at version {current.version}, not {version}; read it again, then decide.",
            id=chain_id,
            version=current.version,
        )
    await tx.execute(INSERT_VERSION, chain_id=chain_id, actor=actor)
    details = {chain_id: {"version": version + 1}}
    await audit_log.record(tx, actor=actor, action="update", object_kind="chain", objects=details, reason="")
    return await find(tx, chain_id)


async def vouch(tx: Tx, chain_id: str, authority: Authority | None) -> None:
    """Record a new authority of a chain that is saved unchanged."""
    await tx.execute(VOUCH, [(chain_id, authority_to_json(authority))])


async def set_enabled(tx: Tx, chain_id: str, *, enabled: bool, actor: str, reason: str = "") -> ChainRow:
    """Enable or disable a chain; no effect if it is already so."""
    if await tx.execute(SET_ENABLED, chain_id=chain_id, enabled=enabled):
        action = "enable" if enabled else "disable"
        await audit_log.record(tx, actor=actor, action=action, object_kind="chain", objects=[chain_id], reason=reason)
    return await find(tx, chain_id)


async def find(tx: Tx, chain_id: str) -> ChainRow:
    return or_not_found(await fetch_one(tx, FIND, chain_id=chain_id), "chain", chain_id)


async def find_dag(tx: Tx, chain_id: str, version: int) -> Mapping[str, Any]:
    """Read the DAG of a version of a chain, which never changes."""
    row = or_not_found(await fetch_one(tx, SELECT_DAG, chain_id=chain_id, version=version), "chain", chain_id)
    return dict(json.loads(row["dag"]))


async def find_summary(tx: Tx, chain_id: str) -> ChainRow:
    """Read a chain without its DAG, which may be large."""
    return or_not_found(await fetch_one(tx, FIND_SUMMARY, chain_id=chain_id), "chain", chain_id)


async def find_by_name(tx: Tx, name: str) -> ChainRow:
    return or_not_found(await fetch_one(tx, FIND_BY_NAME, name=name), "chain", name)


async def page(
    tx: Tx, *, keyword: str = "", enabled: bool | None = None, after: str = "", limit: int = 50
) -> list[ChainRow]:
    """List chains by name; ``after`` is the last name of the previous page."""
    return await tx.fetch(PAGE_AFTER, **_filters(keyword, enabled), after=after, limit=limit)


async def page_number(
    tx: Tx, *, page: int = 1, size: int = 20, keyword: str = "", enabled: bool | None = None
) -> ChainPage:
    """List a numbered page of chains, from 1, and count them all."""
    filters = _filters(keyword, enabled)
    chains = await tx.fetch(PAGE_NUMBER, **filters, limit=size, skipped=(page - 1) * size)
    return ChainPage(chains, (await tx.fetch(COUNT, **filters))[0]["n"])


async def list_versions(tx: Tx, chain_id: str, *, before: int | None = None, limit: int = 50) -> list[ChainVersionRow]:
    """Read the versions of a chain, the newest first, from below ``before``."""
    await find(tx, chain_id)
    return await tx.fetch(LIST_VERSIONS, chain_id=chain_id, before=before or _NO_BOUND, limit=limit)


async def _refuse_taken_name(tx: Tx, chain_id: str, name: str) -> None:
    """Refuse an existing name with a message; for concurrent inserts, the constraint refuses with the same code."""
    chain = await fetch_one(tx, FIND_BY_NAME, name=name)
    if chain is not None and chain.id != chain_id:
        raise ChainNameTaken(f"name: a chain named {name!r} already exists.", field="name")


def _filters(keyword: str, enabled: bool | None) -> dict[str, str]:
    escaped = "".join(f"!{letter}" if letter in "!%_" else letter for letter in keyword.lower())
    return {
        "keyword": keyword,
        "pattern": f"%{escaped}%",
        "enabled": "any" if enabled is None else str(enabled).lower(),
    }
