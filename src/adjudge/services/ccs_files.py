"""Files of the Contest API: submissions, statements, attachments, photos and logos."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.domain.errors import NotFound
from adjudge.services.ccs import CcsService
from adjudge.services.contest_problems import ContestProblemService
from adjudge.services.image_info import ImageInfoCache
from adjudge.services.problem_detail import statement_name
from adjudge.services.problems import PublicFile
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.submitted_files import zip_files
from adjudge.services.team_photos import Photo, TeamPhotoService
from adjudge.services.viewer import Viewer


@dataclass(frozen=True, slots=True)
class CcsFileService:
    """Reads the files that objects refer to, for those who see the objects."""

    reader: CcsService
    sources: SubmissionSourceService
    problems: ContestProblemService
    photos: TeamPhotoService
    images: ImageInfoCache = field(repr=False)

    async def submission_zip(self, viewer: Viewer, contest: str, number: str) -> bytes:
        """The files of a submission as a ZIP archive."""
        found = await self.reader.load(viewer, contest, with_teams=False)
        for submission_id in await self.reader.find_submission(found, number, None):
            try:
                return zip_files((await self.sources.get_files(viewer, submission_id)).files)
            except NotFound:
                break  # its error names the id of a submission that the viewer may not know of
        raise NotFound("submission", number)

    async def statement(self, viewer: Viewer, contest: str, label: str) -> PublicFile:
        """The statement of a problem as PDF; the English one if there are several."""
        found = await self.reader.load(viewer, contest, with_teams=False)
        row = await self.problems.find(found.view, label)
        problem = found.snapshot.definitions.get(row.problem.revision_id)
        statements = [item for item in (problem.statements if problem else ()) if item.format == "pdf"]
        if not statements:
            raise NotFound("statement", label)
        chosen = min(statements, key=lambda item: (item.language != "en", item.language))
        return await self.problems.get_file(found.view, label, statement_name(chosen))

    async def attachment(self, viewer: Viewer, contest: str, label: str, name: str) -> PublicFile:
        """A file that is given to contestants with a problem."""
        found = await self.reader.load(viewer, contest, with_teams=False)
        row = await self.problems.find(found.view, label)
        problem = found.snapshot.definitions.get(row.problem.revision_id)
        if problem is None or name not in {item.name for item in problem.attachments}:
            raise NotFound("attachment", name)
        return await self.problems.get_file(found.view, label, name)

    async def photo(self, viewer: Viewer, contest: str, code: str) -> Photo:
        """The photo of a team."""
        found = await self.reader.load(viewer, contest)
        if code not in {item.code for item in found.snapshot.participants.values()}:
            raise NotFound("team", code)
        return await self.photos.get(viewer, contest, code)

    async def logo(self, viewer: Viewer, contest: str, code: str) -> Photo:
        """The logo of an organisation."""
        found = await self.reader.load(viewer, contest, with_images=True)
        row = next((item for item in found.snapshot.organizations.values() if item.code == code), None)
        info = None if row is None else found.snapshot.images.get(row.logo_digest or "")
        if row is None or row.logo_digest is None or info is None:
            raise NotFound("logo", code)
        return Photo(await self.images.read(row.logo_digest), info.media_type, row.logo_digest)
