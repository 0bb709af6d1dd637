"""Putting a package that was read into the file store and the database, as a revision that never changes."""

from __future__ import annotations

from adjudge.blobs.driver import Blobs
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import NewId, new_id
from adjudge.packages.document import to_document
from adjudge.packages.load import Package
from adjudge.packages.manifest import judging_paths, revision
from adjudge.store.problems import ManifestFile, NewRevision


async def store_files(blobs: Blobs, package: Package) -> tuple[ManifestFile, ...]:
    """Store every file of a package; return what names them. Nothing refers to them until a revision does."""
    if package.recipes:
        raise InvalidInput("package: some of its tests are still to be made; build them before storing it.")
    decisive = set(judging_paths(package.problem))
    files = []
    for path in package.files.names():
        digest = await blobs.put(package.files.locate(path), expected=package.files.sha256(path))
        size_bytes = package.files.size_bytes(path)
        files.append(ManifestFile(path, digest, size_bytes, is_secret=path in decisive))
    return tuple(files)


def new_revision(
    package: Package, files: tuple[ManifestFile, ...], *, problem_id: str, created_by: str, mint: NewId = new_id
) -> NewRevision:
    """The revision that pins those files."""
    return NewRevision(
        id=mint(),
        problem_id=problem_id,
        format=package.problem.origin.format,
        manifest_digest=revision(package.problem, package.files),
        created_by=created_by,
        definition=to_document(package.problem),
        files=files,
    )
