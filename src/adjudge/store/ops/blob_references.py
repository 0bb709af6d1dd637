"""References from rows to blobs, which garbage collection must keep.

A new column with a blob digest needs a statement here; a test compares them with the schema. Chains also reference
blobs in JSON documents (parameters of a run, outputs in an artifact): everything that looks like a digest counts.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from adjudge.store.engine.driver import Database
from adjudge.store.engine.statement import Row, Statement

_PAGE: Final = 5_000
DOCUMENTS_PAGE: Final = 200
"""Page size of documents, which have up to 256 KiB."""
DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def _of(table: str, column: str, key: str, purpose: str) -> Statement:
    return Statement(
        f"blob_uses.{table}_{column}",
        purpose,
        f"""
        SELECT {key} AS key, {column} AS digest FROM {table}
        WHERE {key} > :after ORDER BY {key} LIMIT :limit
        """,
    )


SOURCES = _of("submissions", "source_digest", "id", "Page through the source digests of submissions.")
MANIFESTS = _of("problem_revisions", "manifest_digest", "id", "Page through the manifests of revisions.")
ARCHIVES = _of("problem_imports", "archive_digest", "id", "Page through the archives of imports.")
LOGOS = _of("organizations", "logo_digest", "id", "Page through the logos of organizations.")
PHOTOS = _of("teams", "photo_digest", "id", "Page through the photos of teams.")
MATERIALS = _of("contest_materials", "digest", "id", "Page through the materials of contests.")
FILES = Statement(
    "blob_references.manifest_files_digest",
    "Page through the distinct file digests of all revisions.",
    """
    SELECT digest AS key, digest FROM manifest_files WHERE digest > :after GROUP BY digest
    ORDER BY digest LIMIT :limit
    """,
)
ARTIFACTS = Statement(
    "blob_references.chain_nodes_artifact_digest",
    "Page through the artifact digests of chain nodes, run by run.",
    """
    SELECT chain_runs.id AS key, artifact_digest AS digest
    FROM (SELECT id FROM chain_runs WHERE id > :after ORDER BY id LIMIT :limit) AS chain_runs
    LEFT JOIN chain_nodes ON run_id = chain_runs.id
    ORDER BY chain_runs.id
    """,
)

SOURCES_IN_BLOBS = Statement(
    "blob_references.submissions_source_blob",
    "Page through the digests of sources that are too large for a row.",
    """
    SELECT id AS key, source_digest AS digest FROM submissions
    WHERE id > :after AND NOT EXISTS (SELECT 1 FROM source_texts WHERE source_texts.digest = source_digest)
    ORDER BY id LIMIT :limit
    """,
)

STATEMENTS: Final[Mapping[str, Statement]] = MappingProxyType(
    {
        "submissions.source_digest": SOURCES,
        "problem_revisions.manifest_digest": MANIFESTS,
        "problem_imports.archive_digest": ARCHIVES,
        "organizations.logo_digest": LOGOS,
        "teams.photo_digest": PHOTOS,
        "contest_materials.digest": MATERIALS,
        "manifest_files.digest": FILES,
        "chain_nodes.artifact_digest": ARTIFACTS,
    }
)
"""The paging statement of each column."""

_REQUIRED: Final = (SOURCES_IN_BLOBS, ARCHIVES, LOGOS, PHOTOS, MATERIALS, FILES, ARTIFACTS)
"""Columns whose digests are always blobs. The digest of a manifest is not: the manifest is rows."""


def _within(table: str, column: str, key: str, part: str, purpose: str) -> Statement:
    """A paging statement for the documents of a table with a key of two columns."""
    return Statement(
        f"blob_uses.{table}_{column}",
        purpose,
        f"""
        SELECT {key} AS key, {part} AS part, CAST({column} AS TEXT) AS document FROM {table}
        WHERE ({key}, {part}) > (:after, :after_part) ORDER BY {key}, {part} LIMIT :limit
        """,
    )


_VERSIONS = _within("chain_versions", "dag", "chain_id", "version", "Page through the DAGs of all chain versions.")
_PARAMETERS = _within("chain_runs", "parameters", "id", "chain_id", "Page through the parameters of chain runs.")
_ARTIFACTS_IN_ROWS = _within(
    "chain_nodes", "artifact", "run_id", "node_id", "Page through the artifacts stored in the rows of nodes."
)
_ITEMS = _within("chain_nodes", "item", "run_id", "node_id", "Page through the items of mapped nodes.")
_CHECKPOINTS = _within("chain_checkpoints", "checkpoint", "run_id", "node_id", "Page through the checkpoints of nodes.")
_SPECS = _within("chain_triggers", "spec", "chain_id", "id", "Page through the specs of triggers.")

DOCUMENTS: Final[Mapping[str, tuple[Statement, str | int]]] = MappingProxyType(
    {
        "chain_versions.dag": (_VERSIONS, 0),
        "chain_runs.parameters": (_PARAMETERS, ""),
        "chain_nodes.artifact": (_ARTIFACTS_IN_ROWS, ""),
        "chain_nodes.item": (_ITEMS, ""),
        "chain_checkpoints.checkpoint": (_CHECKPOINTS, ""),
        "chain_triggers.spec": (_SPECS, ""),
    }
)
"""The paging statement of each column, and the first value of the second key column."""


async def iter_referenced_digests(database: Database) -> AsyncIterator[str]:
    """All referenced digests, possibly repeated. Each page is read in its own transaction."""
    for statement in STATEMENTS.values():
        async for digest in _named(database, statement):
            yield digest
    for statement, first in DOCUMENTS.values():
        async for digest in _named_within(database, statement, first):
            yield digest


async def iter_required_digests(database: Database) -> AsyncIterator[str]:
    """The digests whose blobs must exist, possibly repeated; others may be texts that only look like a digest."""
    for statement in _REQUIRED:
        async for digest in _named(database, statement):
            yield digest


async def iter_artifact_digests(database: Database) -> AsyncIterator[str]:
    """The digests of artifacts that are stored as blobs; the blobs that they reference are kept too."""
    async for digest in _named(database, ARTIFACTS):
        yield digest


async def _named(database: Database, statement: Statement) -> AsyncIterator[str]:
    after = ""
    while rows := await _page(database, statement, after):
        for row in rows:
            if row["digest"] is not None:
                yield row["digest"]
        after = rows[-1]["key"]


async def _named_within(database: Database, statement: Statement, first: str | int) -> AsyncIterator[str]:
    position: dict[str, Any] = {"after": "", "after_part": first}
    while rows := await _documents(database, statement, position):
        for row in rows:
            for digest in DIGEST.findall(row["document"] or ""):
                yield digest
        position = {"after": rows[-1]["key"], "after_part": rows[-1]["part"]}


async def _documents(database: Database, statement: Statement, position: Mapping[str, Any]) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(statement, limit=DOCUMENTS_PAGE, **position))


async def _page(database: Database, statement: Statement, after: str) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(statement, after=after, limit=_PAGE))
