"""What every import of a package shares: the worker's import job, ``adjudge problem publish`` and chain nodes.

``problem_imports`` accepts uploads and starts import jobs; this module turns a package into a problem and a revision.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import Conflict
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.problem_metadata import parse_slug, parse_tags, parse_title, tags_from_keywords
from adjudge.packages.files import PackageFiles
from adjudge.packages.load import Package
from adjudge.packages.problem_json import problem_from_json
from adjudge.packages.storing import new_revision, store_package_files
from adjudge.store import Database, Tx
from adjudge.store.problems import imports
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.imports import ImportResult
from adjudge.store.problems.models import ManifestFile, NewProblem


@dataclass(frozen=True, slots=True)
class PackageMetadata:
    """Metadata that replaces that of the package; None keeps it."""

    slug: str | None = None
    title: str | None = None
    tags: Sequence[str] | None = None
    difficulty: float | None = None


@dataclass(frozen=True, slots=True)
class ImportedPackage:
    """The revision that an import added, or the published one if the package has exactly its files."""

    slug: str
    revision: int
    is_unchanged: bool = False


def new_problem(package: Package, owner_id: str, metadata: PackageMetadata, new_id: IdFactory = new_id) -> NewProblem:
    """The problem of a package, for the case that its slug is new."""
    problem = package.problem
    return NewProblem(
        id=new_id(),
        slug=parse_slug(metadata.slug or problem.short_name),
        title=parse_title(metadata.title or problem.title),
        owner_id=owner_id,
        tags=parse_tags(metadata.tags) if metadata.tags is not None else tags_from_keywords(problem.keywords),
        difficulty=metadata.difficulty,
    )


async def import_package(
    database: Database, blobs: BlobStore, package: Package, problem: NewProblem, *, publish: bool
) -> ImportedPackage:
    """Store the files of a package and add a revision to the problem with its slug; its owner does not matter."""
    stored = await store_package_files(blobs, package)
    known = await database.read(lambda tx: _find_unchanged(tx, problem.slug, stored))
    if known is not None:
        return ImportedPackage(problem.slug, known, is_unchanged=True)
    revision = new_revision(package, stored, problem_id=problem.id, created_by=problem.owner_id)
    found = ImportResult(may_edit_others_problems=True, publish_after_import=publish)
    added = await database.transact(lambda tx: imports.add_imported_revision(tx, problem, revision, found))
    if added is None:
        raise Conflict(f"slug: {problem.slug!r} belongs to another user.", field="slug")
    return ImportedPackage(problem.slug, added.number)


async def _find_unchanged(tx: Tx, slug: str, stored: tuple[ManifestFile, ...]) -> int | None:
    problem = await problem_queries.find(tx, slug)
    if problem is None or problem.published_revision_id is None:
        return None
    revision = await problem_queries.find_revision(tx, problem.published_revision_id)
    files = {file.path: file.digest for file in await problem_queries.list_files(tx, revision.id)}
    return revision.number if files == {file.path: file.digest for file in stored} else None


@asynccontextmanager
async def open_revision(database: Database, cache: BlobCache, revision_id: str) -> AsyncIterator[Package]:
    """A stored revision as a package; its files stay in the cache while it is open."""
    revision = await database.read(lambda tx: problem_queries.find_revision(tx, revision_id))
    rows = await database.read(lambda tx: problem_queries.list_files(tx, revision_id))
    async with AsyncExitStack() as pins:
        files = {row.path: await pins.enter_async_context(cache.pin(row.digest)) for row in rows}
        derived = Path(pins.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-revision-")))
        yield Package(problem_from_json(revision.definition), PackageFiles(files, derived), ())
