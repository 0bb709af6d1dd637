"""Package imports: the archive is stored while it is received, then imported by a background job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import asdict, dataclass
from typing import Final

from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission, Role
from adjudge.domain.problem_metadata import parse_difficulty, parse_slug, parse_tags, parse_title
from adjudge.services.admission import AdmissionController
from adjudge.services.problems import ProblemService, can_view_draft
from adjudge.services.submission_events import BEAT_SEC
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.engine.notify import CHANNEL_JUDGING, Wakeup
from adjudge.store.jobs import progress
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.progress import JobProgressRow
from adjudge.store.problems import imports
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.imports import ImportRow, NewImport

_TIMEOUT_MS: Final = 3_600_000
_POLL_MS: Final = 1_000
_PAUSE_SEC: Final = 0.2
"""Pause between two reads: notifications arrive for all imports and submissions."""
_ZIP: Final = b"PK"
_NAME_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """Options of an import."""

    slug: str | None = None
    title: str | None = None
    tags: tuple[str, ...] | None = None
    difficulty: float | None = None
    verify: bool | None = None
    """Default: verify if the package is to be published."""
    publish: bool = False

    def checked(self) -> ImportRequest:
        """The request with normalized values; raises if one is invalid."""
        if self.publish and self.verify is False:
            raise InvalidInput(
                "verify: must not be false with publish=true.",
                field="verify",
            )
        return ImportRequest(
            parse_slug(self.slug) if self.slug else None,
            parse_title(self.title) if self.title else None,
            parse_tags(self.tags) if self.tags is not None else None,
            parse_difficulty(self.difficulty),
            self.publish if self.verify is None else self.verify,
            self.publish,
        )


class PackageTooLarge(InvalidInput):
    """Package too large."""

    code = "PACKAGE_TOO_LARGE"
    http_status = 413


async def limit_archive(pieces: AsyncIterable[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    """Pass on the bytes up to the size limit; data that is not a ZIP archive is rejected at its first bytes."""
    total = 0
    head = b""
    async for piece in pieces:
        if len(head) < len(_ZIP):
            head += piece[: len(_ZIP) - len(head)]
            if not _ZIP.startswith(head):
                raise InvalidInput("package: expected a ZIP archive.", field="package")
        total += len(piece)
        if total > max_bytes:
            raise PackageTooLarge(f"package: exceeds {max_bytes} bytes.", field="package")
        yield piece
    if len(head) < len(_ZIP):
        raise InvalidInput("package: empty; expected a ZIP archive.", field="package")


@dataclass(frozen=True, slots=True)
class ImportState:
    """An import with the progress of its job."""

    row: ImportRow
    progress: JobProgressRow | None


@dataclass(frozen=True, slots=True)
class StartedImport:
    """A new import and its job."""

    id: str
    job_id: str


@dataclass(frozen=True, slots=True)
class ProblemImportService:
    """Package imports and verifications, which run as background jobs."""

    database: Database
    jobs: JobCommands
    blobs: BlobStore
    upload_limit_bytes: int
    admission: AdmissionController
    problems: ProblemService
    new_id: IdFactory = new_id

    async def start_import(
        self, viewer: Viewer, order: ImportRequest, pieces: AsyncIterable[bytes], file_name: str
    ) -> StartedImport:
        """Store an archive and create the job that imports it."""
        order = order.checked()
        if order.publish:
            viewer.require(Permission.PROBLEM_PUBLISH)
        is_admin = viewer.role is Role.ADMIN
        if order.slug is not None:
            slug = order.slug
            taken = await self.database.read(lambda tx: problem_queries.find(tx, slug))
            if taken is not None and taken.owner_id != viewer.id and not is_admin:
                raise Conflict(f"slug: {slug!r} belongs to another user.", field="slug")
        await self.admission.check_capacity(viewer)
        digest = await self.blobs.put(limit_archive(pieces, self.upload_limit_bytes))
        wanted = asdict(order) | {"may_change_others": is_admin}
        shown = "".join(character for character in file_name if character.isprintable())[:_NAME_CHARACTERS]
        new = NewImport(self.new_id(), viewer.id, archive_digest=digest, file_name=shown, requested=wanted)
        return await self._enqueue(new)

    async def start_verification(self, viewer: Viewer, name: str, number: int) -> StartedImport:
        """Create a job that verifies a revision with the jury solutions."""
        problem = await self.problems.find_visible(viewer, name)
        if not can_view_draft(viewer, problem):
            raise NotFound("problem", name)
        problem = await self.problems.find_editable(viewer, name)
        revision = await self.database.read(lambda tx: problem_queries.find_revision_by_number(tx, problem.id, number))
        await self.admission.check_capacity(viewer)
        new = NewImport(
            self.new_id(), viewer.id, purpose="verify", problem_id=problem.id, revision_id=revision.id, file_name=""
        )
        return await self._enqueue(new)

    async def _enqueue(self, new: NewImport) -> StartedImport:
        job_id = await self.database.transact(
            lambda tx: imports.insert(tx, self.jobs, new, timeout_ms=_TIMEOUT_MS, new_id=self.new_id)
        )
        return StartedImport(new.id, job_id)

    async def get_import(self, viewer: Viewer, import_id: str) -> ImportState:
        async def read(tx: Tx) -> tuple[ImportRow, JobProgressRow | None]:
            row = await imports.find(tx, import_id)
            return row, (await progress.find_by_jobs(tx, [row.job_id])).get(row.job_id)

        row, made = await self.database.read(read)
        _check_visible(viewer, row)
        return ImportState(row, made)

    async def watch_import(self, viewer: Viewer, import_id: str) -> AsyncGenerator[ImportState | None, None]:
        """The state of an import, and again whenever it changed, until it finishes; None as a heartbeat.

        The state is sent, not its history: a client that reconnects misses nothing.
        """
        return self._watch(viewer, import_id, await self.get_import(viewer, import_id))

    async def _watch(
        self, viewer: Viewer, import_id: str, seen: ImportState
    ) -> AsyncGenerator[ImportState | None, None]:
        wakeup = Wakeup()
        stop_listening = self.database.listen(CHANNEL_JUDGING, wakeup.set)
        last: ImportState | None = None
        try:
            while True:
                yield None if seen == last else seen
                if seen.row.finished_at is not None:
                    return
                last, beat_at = seen, time.monotonic() + BEAT_SEC
                while seen == last and time.monotonic() < beat_at:
                    await asyncio.sleep(_PAUSE_SEC)
                    await wakeup.wait(_POLL_MS)
                    wakeup.clear()
                    seen = await self.get_import(viewer, import_id)
        finally:
            stop_listening()

    async def list_imports(self, viewer: Viewer, *, before: str | None, limit: int) -> list[ImportState]:
        """The viewer's imports, newest first."""

        async def read(tx: Tx) -> tuple[list[ImportRow], dict[str, JobProgressRow]]:
            rows = await imports.page(tx, created_by=viewer.id, before_id=before, limit=limit)
            return rows, await progress.find_by_jobs(tx, [row.job_id for row in rows])

        rows, made = await self.database.read(read)
        return [ImportState(row, made.get(row.job_id)) for row in rows]

    async def cancel_import(self, viewer: Viewer, import_id: str) -> ImportState:
        """Cancel an import that has not finished."""

        async def write(tx: Tx) -> None:
            row = await imports.find(tx, import_id)
            _check_visible(viewer, row)
            outcome = await self.jobs.cancel(tx, [row.job_id], actor=viewer.id, reason="canceled_manually")
            if not outcome.done:
                raise Conflict("The import has already finished.", import_id=import_id)

        await self.database.transact(write)
        return await self.get_import(viewer, import_id)


def _check_visible(viewer: Viewer, row: ImportRow) -> None:
    if row.created_by != viewer.user_id and viewer.role is not Role.ADMIN:
        raise NotFound("import", row.id)
