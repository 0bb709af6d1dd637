"""Opens a contest package that was uploaded: its objects, its problem packages and its sources, all checked.

Runs in threads, because unpacking and hashing take time; nothing is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import InvalidInput
from adjudge.domain.images import image_type
from adjudge.domain.problem_metadata import parse_slug
from adjudge.domain.programs import SourceFormat
from adjudge.judge.source_bundle import decode_bundle
from adjudge.packages.archive import open_inner_package, open_package
from adjudge.packages.contest_package.extension_file import iter_records, record_names
from adjudge.packages.contest_package.model import (
    EXTENSION_FILE,
    MATERIALS_FOLDER,
    SOURCES_FOLDER,
    SUBMISSIONS_FILE,
    ContestPackage,
    ProblemObject,
    SubmissionRecord,
)
from adjudge.packages.contest_package.reader import read_contest_package
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings, PackageRefused, Severity
from adjudge.packages.load import Package, generated_paths, read_package
from adjudge.packages.manifest import revision_digest
from adjudge.services.contest_materials import MAX_BYTES as MAX_MATERIAL_BYTES
from adjudge.services.contest_problem_specs import MAX_PROBLEMS
from adjudge.services.submit import SMALL_BYTES
from adjudge.services.team_photos import MAX_PHOTO_BYTES

MAX_SOURCE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PackagedProblem:
    """A problem package inside the contest package."""

    package: Package
    digest: str


@dataclass(frozen=True, slots=True)
class OpenedPackage:
    """A contest package while it is open."""

    package: ContestPackage
    files: PackageFiles
    problems: Mapping[str, PackagedProblem]
    submission_count: int = 0
    source_bytes: Mapping[str, int] = field(default_factory=dict)
    """Digest of a source → its size."""
    blob_sources: frozenset[str] = frozenset()
    """Sources that are stored as blobs, because they are large or not text; the others are stored in the database."""

    def records(self) -> Iterator[SubmissionRecord]:
        """The submissions, which were checked when the package was opened."""
        if not self.package.has_submissions:
            return iter(())
        return iter_records(self.files, record_names(self.package), Findings())

    def source_text(self, digest: str) -> str:
        """A source that is stored in the database."""
        return self.files.locate(f"{SOURCES_FOLDER}/{digest}").read_bytes().decode()


@asynccontextmanager
async def open_contest_package(
    blobs: BlobStore, digest: str, name: str, *, with_problems: bool
) -> AsyncIterator[OpenedPackage]:
    """Fetch an archive and read it; raises PackageRefused if it cannot be unpacked or is no contest package.

    ``with_problems``: whether the viewer may import problems; if not, no problem package is opened.
    """
    async with AsyncExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-contest-")))
        archive = scratch / "package.zip"
        await blobs.fetch_to(digest, archive)
        files = await asyncio.to_thread(stack.enter_context, open_package(archive, None, scratch))
        yield await asyncio.to_thread(_read, files, name, scratch, with_problems)


def _read(files: PackageFiles, name: str, scratch: Path, with_problems: bool) -> OpenedPackage:
    package = read_contest_package(files, name)
    findings, problems = package.findings, dict[str, PackagedProblem]()
    if _check_problems(package, with_problems):
        for item in package.problems:
            found = _read_problem(item, files, findings, scratch)
            if found is not None:
                problems[item.id] = found
    _check_files(package, files)
    if not package.has_submissions or findings.has_errors:
        return OpenedPackage(package, files, problems)
    count, sources, blobs = 0, dict[str, int](), set[str]()
    for record in iter_records(files, record_names(package), findings):
        count += 1
        if record.source not in sources:
            sources[record.source] = _check_source(record, files, findings, blobs)
    return OpenedPackage(package, files, problems, count, sources, frozenset(blobs))


def _check_problems(package: ContestPackage, with_problems: bool) -> bool:
    """Whether the problem packages may be opened."""
    findings = package.findings
    if len(package.problems) > MAX_PROBLEMS:
        findings.error("problems.json", f"has more than {MAX_PROBLEMS} problems.", "Remove some.")
        return False
    if not with_problems and any(item.package is not None for item in package.problems):
        findings.error("problems.json", "package: you may not import problems.", "Ask an administrator.")
        return False
    return True


def _read_problem(
    item: ProblemObject, files: PackageFiles, findings: Findings, scratch: Path
) -> PackagedProblem | None:
    path = item.package
    try:
        parse_slug(item.id)
    except InvalidInput as refused:
        findings.error("problems.json", f"id: {refused.message.partition(': ')[2]}", line=item.line)
        return None
    if path is None:
        return None
    own = Findings()
    try:
        inner = _inner_files(item.id, path, files, scratch)
        package = read_package(inner, item.id, own)
    except PackageRefused as refused:
        own.items.extend(refused.findings)
        inner, package = files, None
    for found in own.items:
        if found.severity is Severity.ERROR:
            findings.error(f"{path}: {found.path}" if found.path else path, found.message, found.fix, found.line)
    if package is None or own.has_errors:
        return None
    if all(path in inner for item in package.generated_files for path in generated_paths(item)):
        package = replace(package, generated_files=())  # an export has the files that were generated
    if package.generated_files:
        fix = f"Import it by itself first (adjudge problem import), then leave {path} out."
        findings.error(path, "has tests that must be generated.", fix)
        return None
    return PackagedProblem(package, revision_digest(package.problem, package.files))


def _inner_files(name: str, path: str, files: PackageFiles, scratch: Path) -> PackageFiles:
    """The files of a problem package: of a folder, or of an archive."""
    if not path.endswith("/"):
        return open_inner_package(files, path)
    found = {inner[len(path) :]: files.locate(inner) for inner in files.names(path[:-1])}
    return PackageFiles(found, scratch / f"derived-{name}", files.budget)


def _check_files(package: ContestPackage, files: PackageFiles) -> None:
    findings = package.findings
    for path in package.photos.values():
        if files.size_bytes(path) > MAX_PHOTO_BYTES or image_type(files.head(path, 64)) is None:
            findings.error(path, "is not a PNG, JPEG or WebP picture of at most 4 MiB.", "Replace or remove it.")
    for index, item in enumerate(package.extension.materials if package.extension else ()):
        path = f"{MATERIALS_FOLDER}/{item.name}"
        if path not in files:
            findings.error(EXTENSION_FILE, f"materials[{index}].name: there is no file {path}.", "Add it.")
        elif not 0 < files.size_bytes(path) <= MAX_MATERIAL_BYTES:
            findings.error(path, f"must have 1 to {MAX_MATERIAL_BYTES} bytes.")


def _check_source(record: SubmissionRecord, files: PackageFiles, findings: Findings, blobs: set[str]) -> int:
    """Check a source and return its size; ``blobs`` gets those that are to be blobs."""
    path = f"{SOURCES_FOLDER}/{record.source}"
    size = files.size_bytes(path)
    if size > MAX_SOURCE_BYTES:
        findings.error(path, f"is longer than {MAX_SOURCE_BYTES} bytes.")
        return size
    data = files.locate(path).read_bytes()
    if hashlib.sha256(data).hexdigest() != record.source:
        findings.error(path, "does not have the digest that is its name.", "Name it by the SHA-256 of its content.")
    elif record.source_format is SourceFormat.FILES:
        try:
            decode_bundle(data)
        except InvalidInput as refused:
            findings.error(path, refused.message.partition(": ")[2])
    if not _is_small_text(data):
        blobs.add(record.source)
    if not data:
        findings.error(SUBMISSIONS_FILE, f"source: {path} is empty.")
    return size


def _is_small_text(data: bytes) -> bool:
    if len(data) > SMALL_BYTES or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
