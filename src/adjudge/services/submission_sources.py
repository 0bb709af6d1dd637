"""Reads the files of submissions, for those who may see the submission."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.programs import SourceFormat
from adjudge.judge.languages import Languages
from adjudge.judge.source_bundle import decode_bundle
from adjudge.judge.sources import ProgramSource, SourceFile, single_file_name
from adjudge.services.submissions import SubmissionService
from adjudge.services.viewer import Viewer
from adjudge.store import Database
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.models import SubmissionRow


@dataclass(frozen=True, slots=True)
class SubmissionSourceService:
    """The files and the entry point of submissions."""

    database: Database
    blobs: BlobStore
    languages: Languages
    submissions: SubmissionService

    async def get_source(self, viewer: Viewer, submission_id: str) -> bytes:
        """The source of a submission of one file."""
        files = (await self.get_files(viewer, submission_id)).files
        if len(files) > 1:
            raise InvalidInput(
                f"source: this submission has {len(files)} files; read /submissions/{submission_id}/files instead, or "
                f"/submissions/{submission_id}/archive.",
                field="source",
            )
        return files[0].data

    async def get_files(self, viewer: Viewer, submission_id: str) -> ProgramSource:
        """All files of a submission."""
        return await self.load_files(await self.submissions.get_submission_uncached(viewer, submission_id))

    async def get_file(self, viewer: Viewer, submission_id: str, name: str) -> SourceFile:
        """One file of a submission."""
        files = (await self.get_files(viewer, submission_id)).files
        found = next((file for file in files if file.name == name), None)
        if found is None:
            raise NotFound("file", name)
        return found

    async def load_files(self, row: SubmissionRow) -> ProgramSource:
        """The files of a submission that the viewer may see; a single source is named as in compiler messages."""
        data = await self._load(row.source_digest)
        if row.source_format == SourceFormat.FILES:
            return decode_bundle(data)
        language = next((known for known in self.languages if known.id == row.language), None)
        return ProgramSource((SourceFile(single_file_name(language, data) if language else "source.txt", data),))

    async def _load(self, digest: str) -> bytes:
        kept = await self.database.read(lambda tx: submission_queries.find_source_text(tx, digest))
        if kept is not None:
            return kept.encode()
        data = bytearray()
        async for piece in self.blobs.open(digest):
            data += piece
        return bytes(data)
