"""Photos of teams, which the unfreezing ceremony shows with their awards. Organisers upload them."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from adjudge.blobs.driver import BlobStore
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.images import image_type
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.participants import find_as_organiser, find_participant
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import teams
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.ops import audit_log

MAX_PHOTO_BYTES: Final = 4 * 1024 * 1024
_FIELD: Final = "photo"


@dataclass(frozen=True, slots=True)
class Photo:
    """A picture as it was uploaded."""

    data: bytes
    media_type: str
    digest: str


@dataclass(frozen=True, slots=True)
class TeamPhotoService:
    """Stores and reads photos."""

    database: Database
    blobs: BlobStore

    async def find_team(
        self, viewer: Viewer, contest: str, participant: str
    ) -> tuple[ContestView, ParticipantRow, bool]:
        """For the page of organisers: the participant, and whether its team has a photo."""

        async def look(tx: Tx) -> tuple[ContestView, ParticipantRow, bool]:
            view = await find_as_organiser(tx, viewer, contest)
            row = await find_participant(tx, view.contest.id, participant)
            return view, row, bool((await teams.find_team(tx, _team_of(row))).photo_digest)

        return await self.database.read(look)

    async def save(self, viewer: Viewer, contest: str, participant: str, pieces: AsyncIterable[bytes]) -> None:
        """Replace the photo of a team; anything but a picture of a permitted size is rejected."""
        await self.find_team(viewer, contest, participant)  # before anything is stored
        data = await _read_bounded(pieces)
        if image_type(data) is None:
            raise InvalidInput(f"{_FIELD}: expected a PNG, JPEG or WebP picture.", field=_FIELD)
        await self._set(viewer, contest, participant, await self.blobs.put(data))

    async def delete(self, viewer: Viewer, contest: str, participant: str) -> None:
        """Remove the photo of a team."""
        await self._set(viewer, contest, participant, None)

    async def _set(self, viewer: Viewer, contest: str, participant: str, digest: str | None) -> None:
        async def operation(tx: Tx) -> None:
            view = await find_as_organiser(tx, viewer, contest)
            row = await find_participant(tx, view.contest.id, participant)
            await teams.set_photo(tx, _team_of(row), digest)
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="contest.set_team_photo" if digest else "contest.delete_team_photo",
                object_kind="contest",
                objects={view.contest.id: {"participant": row.code}},
                reason="",
            )

        await self.database.transact(operation)

    async def get(self, viewer: Viewer, contest: str, participant: str) -> Photo:
        """The photo of a team that the viewer may see."""

        async def look(tx: Tx) -> str | None:
            view = await find_view(tx, viewer, contest)
            row = await find_participant(tx, view.contest.id, participant)
            is_shown = not row.hidden and row.kind is not ParticipantKind.TEST
            if view.access(RouteClass.TEAMS) is Access.NONE or not (is_shown or view.sees_all):
                raise NotFound("participant", participant)
            return None if row.team_id is None else (await teams.find_team(tx, row.team_id)).photo_digest

        digest = await self.database.read(look)
        if digest is None:
            raise NotFound(_FIELD, participant)
        async with aclosing(self.blobs.open(digest)) as pieces:
            data = b"".join([piece async for piece in pieces])
        return Photo(data, image_type(data) or "application/octet-stream", digest)


def _team_of(row: ParticipantRow) -> str:
    if row.team_id is None:
        raise Conflict(f"{row.name} takes part alone; only teams have photos.")
    return row.team_id


async def _read_bounded(pieces: AsyncIterable[bytes]) -> bytes:
    data = bytearray()
    async for piece in pieces:
        data += piece
        if len(data) > MAX_PHOTO_BYTES:
            raise InvalidInput(f"{_FIELD}: at most {MAX_PHOTO_BYTES // 1024**2} MiB allowed.", field=_FIELD)
    return bytes(data)
