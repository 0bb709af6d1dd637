"""Which blobs the rows name: what garbage collection must leave alone.

A table that comes to name a blob gets a statement here; a test compares them with the schema.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final

from adjudge.store.driver import Database
from adjudge.store.statement import Row, Statement

_PAGE: Final = 5_000


def _of(table: str, column: str, key: str, purpose: str) -> Statement:
    return Statement(
        f"blob_uses.{table}_{column}",
        purpose,
        f"""
        SELECT {key} AS key, {column} AS digest FROM {table}
        WHERE {key} > :after ORDER BY {key} LIMIT :at_most
        """,
    )


SOURCES = _of("submissions", "source_digest", "id", "Page through the sources that were handed in.")
MANIFESTS = _of("problem_revisions", "manifest_digest", "id", "Page through the manifests of revisions.")
ARCHIVES = _of("problem_imports", "archive_digest", "id", "Page through the archives that problems are read from.")
FILES = Statement(
    "blob_uses.manifest_files_digest",
    "Page through the files of all revisions, each once.",
    """
    SELECT digest AS key, digest FROM manifest_files WHERE digest > :after GROUP BY digest
    ORDER BY digest LIMIT :at_most
    """,
)
ARTIFACTS = Statement(
    "blob_uses.chain_nodes_artifact_digest",
    "Page through what nodes of chains left for their dependents, run by run.",
    """
    SELECT chain_runs.id AS key, artifact_digest AS digest
    FROM (SELECT id FROM chain_runs WHERE id > :after ORDER BY id LIMIT :at_most) AS chain_runs
    LEFT JOIN chain_nodes ON run_id = chain_runs.id
    ORDER BY chain_runs.id
    """,
)

STATEMENTS: Final[Mapping[str, Statement]] = MappingProxyType(
    {
        "submissions.source_digest": SOURCES,
        "problem_revisions.manifest_digest": MANIFESTS,
        "problem_imports.archive_digest": ARCHIVES,
        "manifest_files.digest": FILES,
        "chain_nodes.artifact_digest": ARTIFACTS,
    }
)
"""Column → what pages through it."""


async def live_digests(database: Database) -> AsyncIterator[str]:
    """Every digest that a row names; one may come several times. Each page is a transaction of its own."""
    for statement in STATEMENTS.values():
        after = ""
        while rows := await _page(database, statement, after):
            for row in rows:
                if row["digest"] is not None:
                    yield row["digest"]
            after = rows[-1]["key"]


async def _page(database: Database, statement: Statement, after: str) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(statement, after=after, at_most=_PAGE))
