"""Materials of a contest: files that organisers publish, such as rules, the problem set and editorials.

Each is visible like a class of the visibility table: ``always`` like the contest page, ``start`` like problems that
are not published elsewhere, ``thaw`` like editorials, which need the setting ``materials_public``.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, replace
from typing import Final

from adjudge.blobs.driver import BlobStore
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ContestRole, MaterialVisibility
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import ContestState
from adjudge.services.contest_access import ContestAccess, ContestView, find_view
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import commands, materials
from adjudge.store.contests.activity_models import MaterialRow
from adjudge.store.ops import audit_log

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_FILES: Final = 100
MAX_NAME: Final = 100
MAX_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class MaterialChange:
    """Title and visibility; None keeps what is stored, or the default for a new file."""

    title: str | None = None
    visible: MaterialVisibility | None = None

    def apply(self, row: MaterialRow) -> MaterialRow:
        """The row with the changes."""
        title = row.title if self.title is None else checked_title(self.title)
        return replace(row, title=title, visible=self.visible or row.visible)


@dataclass(frozen=True, slots=True)
class ContestMaterialService:
    """Operations on materials."""

    database: Database
    access: ContestAccess
    blobs: BlobStore
    new_id: IdFactory = new_id

    async def list_materials(self, view: ContestView) -> list[MaterialRow]:
        """Those that the viewer may see, by name."""
        rows = await self.database.read(lambda tx: materials.list_all(tx, view.contest.id))
        return [row for row in rows if is_visible(view, row.visible)]

    async def find(self, viewer: Viewer, contest: str, name: str) -> MaterialRow:
        """One that the viewer may see."""

        async def read(tx: Tx) -> MaterialRow:
            view = await find_view(tx, viewer, contest)
            row = await materials.find(tx, view.contest.id, name)
            if not is_visible(view, row.visible):
                raise NotFound("material", name)
            return row

        return await self.database.read(read)

    def read_file(self, row: MaterialRow) -> AsyncIterator[bytes]:
        """The content of a file."""
        return self.blobs.open(row.digest)

    async def save(
        self, viewer: Viewer, contest: str, name: str, pieces: AsyncIterable[bytes], change: MaterialChange
    ) -> MaterialRow:
        """Add a file, or replace the one with its name; a new one is visible always, unless the change says else."""
        checked = checked_name(name)
        await self.access.find_as(viewer, contest, ContestRole.ORGANISER)  # before anything is stored
        digest = await self.blobs.put(_limited(pieces))
        size_bytes = (await self.blobs.stat(digest)).size_bytes

        async def operation(tx: Tx) -> MaterialRow:
            view = await _lock_as_organiser(tx, viewer, contest)
            known = {row.name: row for row in await materials.list_all(tx, view.contest.id)}
            if checked not in known and len(known) >= MAX_FILES:
                raise Conflict(f"A contest has at most {MAX_FILES} materials; delete one first.")
            row = known.get(checked) or MaterialRow(
                self.new_id(), view.contest.id, checked, "", MaterialVisibility.ALWAYS, digest, size_bytes, viewer.id
            )
            row = change.apply(replace(row, digest=digest, size_bytes=size_bytes, created_by=viewer.id))
            await _store(tx, viewer, "contest_material.save", row)
            return await materials.find(tx, view.contest.id, checked)

        return await self.database.transact(operation)

    async def update(self, viewer: Viewer, contest: str, name: str, change: MaterialChange) -> MaterialRow:
        """Change the title or when it is visible."""

        async def operation(tx: Tx) -> MaterialRow:
            view = await _lock_as_organiser(tx, viewer, contest)
            row = change.apply(await materials.find(tx, view.contest.id, name))
            await _store(tx, viewer, "contest_material.update", row)
            return await materials.find(tx, view.contest.id, name)

        return await self.database.transact(operation)

    async def delete(self, viewer: Viewer, contest: str, name: str) -> None:
        """Delete a file; its content is garbage-collected."""

        async def operation(tx: Tx) -> None:
            view = await _lock_as_organiser(tx, viewer, contest)
            row = await materials.find(tx, view.contest.id, name)
            await materials.delete(tx, view.contest.id, name)
            await _record(tx, viewer, "contest_material.delete", row)

        await self.database.transact(operation)


def is_visible(view: ContestView, visible: MaterialVisibility) -> bool:
    """Whether the viewer sees materials of a visibility now."""
    if view.sees_all:
        return True
    if visible is MaterialVisibility.START:
        return view.sees_unpublished_problems
    if visible is MaterialVisibility.THAW:
        return view.contest.state is not ContestState.CANCELED and _may(view, RouteClass.EDITORIALS)
    return _may(view, RouteClass.CONTEST)


def _may(view: ContestView, route: RouteClass) -> bool:
    return view.access(route) is not Access.NONE


async def _lock_as_organiser(tx: Tx, viewer: Viewer, contest: str) -> ContestView:
    view = await find_view(tx, viewer, contest)
    view.require(ContestRole.ORGANISER)
    await commands.lock(tx, view.contest.id)  # the number of files is limited
    return view


async def _store(tx: Tx, viewer: Viewer, action: str, row: MaterialRow) -> None:
    await materials.upsert(tx, [row])
    await _record(tx, viewer, action, row)


async def _record(tx: Tx, viewer: Viewer, action: str, row: MaterialRow) -> None:
    details = {"name": row.name, "visible": str(row.visible), "digest": row.digest}
    await audit_log.record(
        tx, actor=viewer.id, action=action, object_kind="contest", objects={row.contest_id: details}, reason=""
    )


async def _limited(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    total = 0
    async for piece in pieces:
        total += len(piece)
        if total > MAX_BYTES:
            raise InvalidInput(f"file: exceeds {MAX_BYTES // (1024 * 1024)} MiB.", field="file")
        yield piece
    if not total:
        raise InvalidInput("file: empty.", field="file")


def checked_name(name: str) -> str:
    """Check the file name of a material."""
    is_safe = name.isprintable() and name == name.strip() and not set("/\\") & set(name) and not name.startswith(".")
    if not is_safe or not 0 < len(name) <= MAX_NAME:
        raise InvalidInput(
            f"name: expected a file name of 1 to {MAX_NAME} printable characters without slashes, not starting with a "
            "dot.",
            field="name",
        )
    return name


def checked_title(title: str) -> str:
    """Check the title of a material."""
    title = title.strip()
    if len(title) > MAX_TITLE or not title.isprintable():
        raise InvalidInput(f"title: expected at most {MAX_TITLE} printable characters.", field="title")
    return title
