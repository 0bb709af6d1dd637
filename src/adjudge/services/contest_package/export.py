"""Exports a contest as a contest package, a ZIP archive that is written while it is sent.

What changes is read in one transaction, the submissions into a temporary file. Files (tests, sources, materials) are
immutable and are read when they are sent, so memory does not grow with the contest.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Final, Protocol

from adjudge.blobs.driver import BlobStore
from adjudge.domain.contest import ContestRole
from adjudge.domain.images import image_type
from adjudge.domain.states import ContestState
from adjudge.packages.contest_package.extension_file import write_record
from adjudge.packages.contest_package.model import (
    MATERIALS_FOLDER,
    SOURCES_FOLDER,
    SUBMISSIONS_FILE,
    CaseRecord,
    SubmissionRecord,
)
from adjudge.packages.contest_package.writer import write_documents
from adjudge.services.contest_access import find_view
from adjudge.services.contest_package.load import StoredPackage, load_contest
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import package_export
from adjudge.store.contests.package_export import PackagedCase, PackagedSubmission
from adjudge.store.problems.models import RevisionFileRow

_PAGE: Final = 50
"""Submissions that are read and encoded at once; their result documents are large."""
_SOURCES: Final = 100
_CHUNK: Final = 256 * 1024
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_PHOTO_ENDINGS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}


@dataclass(frozen=True, slots=True)
class ContestExport:
    """A package that is being written."""

    file_name: str
    pieces: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class ContestPackageExporter:
    """Exports contests, for their organisers."""

    database: Database
    blobs: BlobStore

    async def export(self, viewer: Viewer, name: str, *, with_submissions: bool = True) -> ContestExport:
        """Read a contest and return the archive, whose bytes are made while they are read."""
        records = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the archive ends
        try:
            stored, sources = await self._read(viewer, name, records, with_submissions=with_submissions)
        except BaseException:
            records.close()
            raise
        pieces = self._archive(stored, records, sources, with_submissions=with_submissions)
        return ContestExport(f"{stored.contest.slug}.zip", pieces)

    async def _read(
        self, viewer: Viewer, name: str, records: IO[bytes], *, with_submissions: bool
    ) -> tuple[StoredPackage, list[str]]:
        async def look(tx: Tx) -> tuple[StoredPackage, list[str]]:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER)
            records.seek(0)
            records.truncate()
            stored = await load_contest(tx, viewer, view.contest)
            if not with_submissions:
                return without_history(stored), []
            return stored, await write_records(tx, stored, records)

        return await self.database.read(look)

    async def _archive(
        self, stored: StoredPackage, records: IO[bytes], sources: list[str], *, with_submissions: bool
    ) -> AsyncGenerator[bytes, None]:
        sink = _Sink()
        photos = {code: f"teams/{code}/photo.{await self._ending(digest)}" for code, digest in stored.photos.items()}
        package = replace(stored.package, photos=photos)
        with records, zipfile.ZipFile(sink, "w") as archive:
            for path, data in sorted(write_documents(package).items()):
                with _entry(archive, path) as out:
                    out.write(data)
            yield sink.take()
            for code, path in photos.items():
                async for piece in self._blob(archive, sink, path, stored.photos[code]):
                    yield piece
            for path, files in stored.problem_files.items():
                async for piece in self._problem(archive, sink, path, files):
                    yield piece
            for row in stored.materials:
                async for piece in self._blob(archive, sink, f"{MATERIALS_FOLDER}/{row.name}", row.digest):
                    yield piece
            if with_submissions:
                async for piece in self._submissions(archive, sink, records, sources):
                    yield piece
        yield sink.take()

    async def _ending(self, digest: str) -> str:
        """The ending of a picture by its first bytes."""
        async with aclosing(self.blobs.open(digest)) as pieces:
            async for piece in pieces:
                return _PHOTO_ENDINGS.get(image_type(piece) or "", "png")
        return "png"

    async def _problem(
        self, archive: zipfile.ZipFile, sink: _Sink, path: str, files: Sequence[RevisionFileRow]
    ) -> AsyncIterator[bytes]:
        """The files of a revision as they were imported, as an archive in the archive."""
        with _entry(archive, path, packed=False) as out, zipfile.ZipFile(_Unseekable(out), "w") as inner:
            for file in files:
                async for piece in self._blob(inner, sink, file.path, file.digest):
                    yield piece

    async def _blob(self, archive: zipfile.ZipFile, sink: _Sink, path: str, digest: str) -> AsyncIterator[bytes]:
        with _entry(archive, path) as out:
            async for piece in self.blobs.open(digest):
                out.write(piece)
                yield sink.take()

    async def _submissions(
        self, archive: zipfile.ZipFile, sink: _Sink, records: IO[bytes], sources: list[str]
    ) -> AsyncIterator[bytes]:
        with _entry(archive, SUBMISSIONS_FILE) as out:
            records.seek(0)
            while chunk := records.read(_CHUNK):
                out.write(chunk)
                yield sink.take()
        for begin in range(0, len(sources), _SOURCES):
            digests = sources[begin : begin + _SOURCES]
            texts = await self.database.read(partial(package_export.small_sources, digests=digests))
            for digest in digests:
                path = f"{SOURCES_FOLDER}/{digest}"
                if digest not in texts:
                    async for piece in self._blob(archive, sink, path, digest):
                        yield piece
                    continue
                with _entry(archive, path) as out:
                    out.write(texts[digest].encode())
            yield sink.take()


def without_history(stored: StoredPackage) -> StoredPackage:
    """The contest as it can be held again: without what happened in it."""
    extension = stored.package.extension
    if extension is None:
        return stored
    contest = replace(extension.contest, frozen_at=None, finalized_at=None, end_of_updates_at=None)
    plain = replace(
        extension,
        contest=replace(contest, state=ContestState.DRAFT),
        participants=tuple(
            replace(item, started_at=None, disqualified_at=None, penalty_adjust_sec=0)
            for item in extension.participants
        ),
        removed_intervals=(),
        clarifications=(),
        awards=(),
    )
    package = replace(stored.package, contest=replace(stored.package.contest, thaw_at=None), extension=plain)
    return replace(stored, package=package)


class RecordWriter(Protocol):
    """What the lines of submissions are written to."""

    def write(self, data: bytes, /) -> int: ...


async def write_records(tx: Tx, stored: StoredPackage, out: RecordWriter) -> list[str]:
    """Write the submissions as lines; return the digests of their sources, each once."""
    sources: dict[str, None] = {}
    after = 0
    while page := await package_export.submissions(tx, stored.contest.id, after=after, limit=_PAGE):
        jobs = [row.judged_by_job_id for row in page if row.judged_by_job_id is not None]
        cases = await package_export.cases(tx, jobs)
        for row in page:
            if row.problem_id not in stored.problems:  # the problem was removed from the contest
                continue
            out.write(write_record(_record(stored, row, cases.get(row.judged_by_job_id or "", ()))))
            sources[row.source_digest] = None
        after = page[-1].number
    return list(sources)


_SAME: Final = (
    "number",
    "language",
    "source_format",
    "created_at",
    "received_at",
    "status",
    "verdict",
    "score",
    "time_ms",
    "mem_kb",
    "finished_at",
    "official",
    "score_micro",
    "max_score_micro",
    "subtasks",
    "ignored_at",
    "verified_at",
    "verified_verdict",
    "override_verdict",
    "override_score_micro",
    "overridden_at",
    "override_reason",
    "result",
)
_CASE: Final = (
    "name",
    "verdict",
    "time_ms",
    "wall_ms",
    "mem_kb",
    "score",
    "exit_code",
    "exit_signal",
    "limit_hit",
    "message",
)


def _record(stored: StoredPackage, row: PackagedSubmission, cases: Iterable[PackagedCase]) -> SubmissionRecord:
    return SubmissionRecord(
        team=stored.teams[row.participant_id],
        user=stored.users[row.user_id],
        problem=stored.problems[row.problem_id],
        source=row.source_digest,
        verified_by=stored.users.get(row.verified_by or ""),
        overridden_by=stored.users.get(row.overridden_by or ""),
        cases=tuple(
            CaseRecord(group=item.group_name, **{name: getattr(item, name) for name in _CASE}) for item in cases
        ),
        **{name: getattr(row, name) for name in _SAME},
    )


class _Sink:
    """Collects what the archive writes until it is sent."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes, /) -> int:
        self._data += data
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The data is sent, not stored."""

    def take(self) -> bytes:
        """What was written since the last call."""
        data = bytes(self._data)
        self._data.clear()
        return data


class _Unseekable:
    """An entry of an archive as a file that an inner archive is written to."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, data: bytes, /) -> int:
        return self._out.write(data)

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        """The outer archive closes the entry."""


@contextmanager
def _entry(archive: zipfile.ZipFile, path: str, *, packed: bool = True) -> Iterator[IO[bytes]]:
    """Write an entry; the same contest always gives the same bytes."""
    entry = zipfile.ZipInfo(path, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    entry.external_attr = 0o100644 << 16
    with archive.open(entry, "w", force_zip64=True) as out:
        yield out
