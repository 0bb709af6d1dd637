"""Changes of problems and their revisions. A revision is immutable, so that verdicts stay reproducible.

Every change of what users see increments the cache revisions in the same transaction.
"""

from __future__ import annotations

import json

from adjudge.domain.errors import Conflict, NotFound, VersionConflict
from adjudge.domain.problem_metadata import search_words
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.rows import column_values, given_columns
from adjudge.store.engine.statement import Statement
from adjudge.store.ops import cache_revisions
from adjudge.store.problems.models import ManifestFile, NewProblem, NewRevision

INSERT = Statement(
    "problems.insert",
    "Insert a problem without a revision.",
    """
    INSERT INTO problems (id, slug, title, owner_id, tags, difficulty, created_at, updated_at)
    VALUES (:id, :slug, :title, :owner_id, :tags, :difficulty, {now}, {now})
    """,
)

UPDATE = Statement(
    "problems.update",
    "Update a problem's metadata if its version is unchanged.",
    """
    UPDATE problems SET title = :title, tags = :tags, difficulty = :difficulty, version = version + 1,
        updated_at = {now}
    WHERE id = :problem_id AND version = :version
    RETURNING slug, version
    """,
)

DELETE_WORDS = Statement(
    "problems.delete_words",
    "Delete a problem's search words.",
    "DELETE FROM problem_words WHERE problem_id = :problem_id",
)

INSERT_WORDS = Statement(
    "problems.insert_words",
    "Insert a problem's search words.",
    "INSERT INTO problem_words (problem_id, word) SELECT :problem_id, given_word FROM {given}",
    input_columns={"given_word": "text"},
)

DELETE_TAGS = Statement(
    "problems.delete_tags",
    "Delete a problem's tags.",
    "DELETE FROM problem_tags WHERE problem_id = :problem_id",
)

INSERT_TAGS = Statement(
    "problems.insert_tags",
    "Insert a problem's tags.",
    "INSERT INTO problem_tags (problem_id, tag) SELECT :problem_id, given_tag FROM {given}",
    input_columns={"given_tag": "text"},
)

INSERT_REVISION = Statement(
    "problems.insert_revision",
    "Insert the next revision of a problem as a draft.",
    """
    INSERT INTO problem_revisions (id, problem_id, number, format, manifest_digest, definition, created_by, created_at)
    SELECT :id, :problem_id,
           1 + COALESCE((SELECT max(number) FROM problem_revisions WHERE problem_id = :problem_id), 0),
           :format, :manifest_digest, :definition, :created_by, {now}
    RETURNING number
    """,
)

INSERT_FILES = Statement(
    "problems.insert_files",
    "Insert the files of a revision.",
    """
    INSERT INTO manifest_files (revision_id, path, digest, size_bytes, is_secret)
    SELECT :revision_id, given_path, given_digest, given_size_bytes, given_is_secret FROM {given}
    """,
    input_columns=given_columns(ManifestFile),
)

SELECT_JUDGING_FILES = Statement(
    "problems.select_judging_files",
    "List the files of a revision that judging needs.",
    "SELECT path, digest FROM manifest_files WHERE revision_id = :revision_id AND is_secret ORDER BY path",
)

PUBLISH = Statement(
    "problems.publish",
    "Set the published revision of a problem.",
    """
    UPDATE problems SET published_revision_id = :revision_id, version = version + 1, updated_at = {now}
    WHERE id = :problem_id AND version = :version
    RETURNING slug, version
    """,
)

WITHDRAW = Statement(
    "problems.withdraw",
    "Unpublish a problem; it accepts no more submissions.",
    """
    UPDATE problems SET published_revision_id = NULL, version = version + 1, updated_at = {now}
    WHERE id = :problem_id AND version = :version
    RETURNING slug, version
    """,
)

MARK_WITHDRAWN = Statement(
    "problems.mark_withdrawn",
    "Set the state of the published revision to withdrawn.",
    """
    UPDATE problem_revisions SET state = 'withdrawn'
    WHERE id = (SELECT published_revision_id FROM problems WHERE id = :problem_id)
    RETURNING id
    """,
)

MARK_PUBLISHED = Statement(
    "problems.mark_published",
    "Set the state of a revision to published.",
    """
    UPDATE problem_revisions SET state = 'published', published_at = {now}
    WHERE id = :revision_id AND problem_id = :problem_id
    RETURNING id
    """,
)


async def insert(tx: Tx, problem: NewProblem) -> None:
    """Create a problem; a slug that exists is a Conflict."""
    await tx.execute(INSERT, **column_values(problem))
    await index_for_search(tx, problem)


async def update(
    tx: Tx, *, problem_id: str, version: int, title: str, tags: tuple[str, ...], difficulty: float | None
) -> int:
    """Update a problem if it still has ``version``; return its new version."""
    row = await fetch_one(
        tx,
        UPDATE,
        problem_id=problem_id,
        version=version,
        title=title,
        tags=json.dumps(list(tags)),
        difficulty=difficulty,
    )
    if row is None:
        raise _version_conflict(problem_id)
    await _index(tx, problem_id, row["slug"], title, tags)
    await _changed(tx, problem_id, row["slug"])
    return int(row["version"])


async def index_for_search(tx: Tx, problem: NewProblem) -> None:
    await _index(tx, problem.id, problem.slug, problem.title, problem.tags)


async def _index(tx: Tx, problem_id: str, slug: str, title: str, tags: tuple[str, ...]) -> None:
    await tx.execute(DELETE_WORDS, problem_id=problem_id)
    await tx.execute(DELETE_TAGS, problem_id=problem_id)
    await tx.execute(INSERT_WORDS, [(word,) for word in search_words(slug, title, *tags)], problem_id=problem_id)
    await tx.execute(INSERT_TAGS, [(tag,) for tag in tags], problem_id=problem_id)


async def _changed(tx: Tx, problem_id: str, slug: str) -> None:
    of_problem = cache_revisions.problem_key
    await cache_revisions.bump(tx, [cache_revisions.CATALOGUE, of_problem(problem_id), of_problem(slug)])


def _version_conflict(problem_id: str) -> VersionConflict:
    return VersionConflict("The problem was changed concurrently; read it again and retry.", problem_id=problem_id)


async def add_revision(tx: Tx, revision: NewRevision) -> int:
    """Add a revision with its files; return its number. Of two concurrent ones, one gets a Conflict."""
    rows = await tx.fetch(
        INSERT_REVISION,
        id=revision.id,
        problem_id=revision.problem_id,
        format=revision.format,
        manifest_digest=revision.manifest_digest,
        definition=json.dumps(revision.definition),
        created_by=revision.created_by,
    )
    files = [(*column_values(file).values(),) for file in revision.files]
    if files:
        await tx.execute(INSERT_FILES, files, revision_id=revision.id)
    return int(rows[0]["number"])


async def publish(tx: Tx, *, problem_id: str, revision_id: str, version: int) -> int:
    """Publish a revision if the problem still has ``version``; return the problem's new version."""
    if await fetch_one(tx, MARK_PUBLISHED, revision_id=revision_id, problem_id=problem_id) is None:
        raise NotFound("revision", revision_id)
    row = await fetch_one(tx, PUBLISH, problem_id=problem_id, revision_id=revision_id, version=version)
    if row is None:
        raise _version_conflict(problem_id)
    await _changed(tx, problem_id, row["slug"])
    return int(row["version"])


async def withdraw(tx: Tx, *, problem_id: str, version: int) -> int:
    """Unpublish a problem if it still has ``version``; return its new version."""
    if await fetch_one(tx, MARK_WITHDRAWN, problem_id=problem_id) is None:
        raise Conflict("The problem is not published.", problem_id=problem_id)
    row = await fetch_one(tx, WITHDRAW, problem_id=problem_id, version=version)
    if row is None:
        raise _version_conflict(problem_id)
    await _changed(tx, problem_id, row["slug"])
    return int(row["version"])


async def list_judging_files(tx: Tx, revision_id: str) -> dict[str, str]:
    """The digests of the files that judging needs, by path."""
    rows = await tx.fetch(SELECT_JUDGING_FILES, revision_id=revision_id)
    return {row["path"]: row["digest"] for row in rows}
