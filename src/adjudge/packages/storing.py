"""Stores a package in the blob store and the database, as an immutable revision."""

from __future__ import annotations

from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.packages.load import Package
from adjudge.packages.manifest import judging_paths, revision_digest
from adjudge.packages.problem_json import problem_to_json
from adjudge.store.problems.models import ManifestFile, NewRevision


async def store_package_files(blobs: BlobStore, package: Package) -> tuple[ManifestFile, ...]:
    """Store every file of a package; returns their manifest. Nothing refers to the files until a revision does."""
    if package.generated_files:
        raise InvalidInput("package: some tests have not been generated; generate them before storing it.")
    decisive = set(judging_paths(package.problem))
    files = []
    for path in package.files.names():
        digest = await blobs.put(package.files.locate(path), expected=package.files.sha256(path))
        size_bytes = package.files.size_bytes(path)
        files.append(ManifestFile(path, digest, size_bytes, is_secret=path in decisive))
    return tuple(files)


def new_revision(
    package: Package, files: tuple[ManifestFile, ...], *, problem_id: str, created_by: str, new_id: IdFactory = new_id
) -> NewRevision:
    return NewRevision(
        id=new_id(),
        problem_id=problem_id,
        format=package.problem.package_format.format,
        manifest_digest=revision_digest(package.problem, package.files),
        created_by=created_by,
        definition=problem_to_json(package.problem),
        files=files,
    )
