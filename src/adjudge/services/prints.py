"""The print queue of a contest: participants send text, the staff or a print server prints it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final

from adjudge.contests.print_layout import Page, format_pages, paginate
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ContestPhase, ContestRole, ParticipantKind
from adjudge.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, RateLimited
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import ContestState
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.viewer import Viewer
from adjudge.settings.printing_section import PrintingSettings
from adjudge.store import Database, Tx
from adjudge.store.contests import prints
from adjudge.store.contests.activity_models import NewPrint, PrintRow
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.ops import audit_log

STAFF: Final = (ContestRole.PRINT, ContestRole.ORGANISER, ContestRole.JUDGE)
MAX_NAME: Final = 100
_NEWEST: Final = 2**62
_OPEN: Final = (ContestPhase.RUNNING, ContestPhase.FROZEN)
_KINDS: Final = (ParticipantKind.OFFICIAL, ParticipantKind.UNOFFICIAL, ParticipantKind.TEST)


class PrintFilter(StrEnum):
    """Which print jobs are listed."""

    ALL = "all"
    OPEN = "open"
    """Pending or being printed."""
    PENDING = "pending"
    PRINTING = "printing"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class PrintList:
    """Print jobs: all for the staff, else the own ones."""

    view: ContestView
    items: list[PrintRow]


@dataclass(frozen=True, slots=True)
class PrintDocument:
    """A print job with its text."""

    view: ContestView
    row: PrintRow
    body: str

    @property
    def pages(self) -> list[Page]:
        """The text in pages."""
        return paginate(self.body)

    def format(self) -> str:
        """The pages with their titles, for a printer."""
        pages, row = self.pages, self.row
        where = f", {row.location}" if row.location else ""
        titles = [
            f"#{row.number}  {row.owner}{where}  {row.file_name}  {number}/{len(pages)}"
            for number in range(1, len(pages) + 1)
        ]
        return format_pages(pages, titles)


@dataclass(frozen=True, slots=True)
class PrintService:
    """Operations on print jobs."""

    database: Database
    settings: PrintingSettings
    new_id: IdFactory = new_id

    async def list_prints(
        self,
        viewer: Viewer,
        contest: str,
        *,
        which: PrintFilter = PrintFilter.ALL,
        after: int = 0,
        limit: int,
        newest_first: bool = False,
    ) -> PrintList:
        """All print jobs for the staff, by number; for participants their own ones, newest first.

        ``after`` is the number of the last one of the previous page.
        """

        async def read(tx: Tx) -> PrintList:
            view = await find_view(tx, viewer, contest)
            if sees_queue(view):
                is_open = view.access(RouteClass.PRINTS) is not Access.NONE
                rows = await prints.page(
                    tx, view.contest.id, state=which, after=after, limit=limit, newest_first=newest_first
                )
                return PrintList(view, rows if is_open else [])
            _require_own(view)
            ids = [item.id for item in view.participants]
            return PrintList(
                view,
                await prints.own(tx, view.contest.id, ids, state=which, before=after or _NEWEST, limit=limit),
            )

        return await self.database.read(read)

    async def find(self, viewer: Viewer, contest: str, number: int) -> PrintDocument:
        """A print job with its text, for the staff and for its participant."""

        async def read(tx: Tx) -> PrintDocument:
            view = await find_view(tx, viewer, contest)
            row = await prints.find(tx, view.contest.id, number)
            if row is None or not _sees_text(view, row):
                raise NotFound("print", str(number))
            return PrintDocument(view, row, await prints.body(tx, row))

        return await self.database.read(read)

    async def submit(self, viewer: Viewer, contest: str, file_name: str, body: str) -> PrintRow:
        """Send a text to the printer, as a participant or as staff."""
        name, size_bytes = _checked_name(file_name), _checked_size(body, self.settings.job_bytes)
        pages = len(paginate(body))
        if pages > self.settings.job_pages:
            raise InvalidInput(
                f"content: {pages} pages; at most {self.settings.job_pages} are allowed.", field="content"
            )

        async def operation(tx: Tx) -> PrintRow:
            view = await find_view(tx, viewer, contest)
            participant = _printing_participant(view)
            number = await prints.take_number(tx, view.contest.id)
            if participant is not None:
                await self._check_rate(tx, participant)
            participant_id = None if participant is None else participant.id
            new = NewPrint(self.new_id(), view.contest.id, participant_id, viewer.id, name, body, size_bytes, pages)
            await prints.insert(tx, new, number)
            return await _find(tx, view, number)

        return await self.database.transact(operation)

    async def _check_rate(self, tx: Tx, participant: ParticipantRow) -> None:
        """Limit what a participant prints; the counter of the contest is locked, so the count is exact."""
        limits = self.settings
        period_us = limits.period_sec * 1_000_000
        count, oldest_us = await prints.count_recent(tx, participant.id, period_us=period_us)
        if count >= limits.jobs:
            wait_sec = max(1, ceil((period_us - oldest_us) / 1_000_000))
            raise RateLimited(
                f"At most {limits.jobs} print jobs in {limits.period_sec} seconds: retry later.",
                retry_after_sec=wait_sec,
            )

    async def claim(self, viewer: Viewer, contest: str, number: int) -> PrintRow:
        """Claim a pending job, so that nobody else prints it."""

        async def change(tx: Tx, row: PrintRow) -> bool:
            if not await prints.claim(tx, row, viewer.id):
                raise Conflict("The print job is claimed or printed already.")
            return True

        return await self._change(viewer, contest, number, "print.claim", change)

    async def finish(self, viewer: Viewer, contest: str, number: int) -> PrintRow:
        """Mark a job as printed; one that is printed stays as it is."""

        async def change(tx: Tx, row: PrintRow) -> bool:
            return await prints.finish(tx, row, viewer.id)

        return await self._change(viewer, contest, number, "print.finish", change)

    async def requeue(self, viewer: Viewer, contest: str, number: int) -> PrintRow:
        """Put a claimed or printed job back into the queue; one that is there stays as it is."""
        return await self._change(viewer, contest, number, "print.requeue", prints.requeue)

    async def _change(
        self,
        viewer: Viewer,
        contest: str,
        number: int,
        action: str,
        change: Callable[[Tx, PrintRow], Awaitable[bool]],
    ) -> PrintRow:
        async def operation(tx: Tx) -> PrintRow:
            view = await find_view(tx, viewer, contest)
            view.require(*STAFF)
            row = await _find(tx, view, number)
            if await change(tx, row):
                details = {row.id: {"number": number}}
                await audit_log.record(
                    tx, actor=viewer.id, action=action, object_kind="print", objects=details, reason=""
                )
            return await _find(tx, view, number)

        return await self.database.transact(operation)


def is_staff(view: ContestView) -> bool:
    """Whether the viewer prints for others."""
    return not view.roles.isdisjoint(STAFF)


def sees_queue(view: ContestView) -> bool:
    """Whether the viewer sees all print jobs."""
    return is_staff(view) or view.sees_all


def may_print(view: ContestView) -> bool:
    """Whether the viewer may send something to the printer now."""
    try:
        _printing_participant(view)
    except (Conflict, Forbidden):
        return False
    return True


async def _find(tx: Tx, view: ContestView, number: int) -> PrintRow:
    row = await prints.find(tx, view.contest.id, number)
    if row is None or view.access(RouteClass.PRINTS, is_own=True) is Access.NONE:
        raise NotFound("print", str(number))
    return row


def _require_own(view: ContestView) -> None:
    if not view.participants or view.access(RouteClass.PRINTS, is_own=True) is Access.NONE:
        raise Forbidden("Print jobs are for participants and print staff of this contest.")


def _sees_text(view: ContestView, row: PrintRow) -> bool:
    """The staff and the participant; API readers see the list only."""
    if is_staff(view):
        return view.access(RouteClass.PRINTS) is not Access.NONE
    is_own = any(item.id == row.participant_id for item in view.participants)
    return is_own and view.access(RouteClass.PRINTS, is_own=True) is not Access.NONE


def _printing_participant(view: ContestView) -> ParticipantRow | None:
    """For whom the viewer prints now; None: as staff. Raises with the reason if printing is not possible."""
    if not view.contest.settings.printing_enabled:
        raise Conflict("Printing is off in this contest (setting printing_enabled).")
    if view.contest.state is ContestState.CANCELED:
        raise Conflict("The contest was canceled.")
    own = [item for item in view.participants if item.kind in _KINDS]
    for item in own:
        is_early = item.kind is ParticipantKind.TEST and not view.times.has_ended_for_all
        if is_early or view.times.phase(item) in _OPEN:
            if item.disqualified_at is not None:
                raise Forbidden("This participant is disqualified.")
            return item
    if is_staff(view):
        return None
    if not own:
        raise Forbidden("Only participants can print; register for the contest first.")
    if view.phase is ContestPhase.BEFORE:
        raise Conflict("Printing opens when the contest starts.")
    raise Conflict("Printing is closed: the contest has ended.")


def _checked_name(file_name: str) -> str:
    name = file_name.replace("\\", "/").rpartition("/")[2].strip() or "print.txt"
    if len(name) > MAX_NAME or not name.isprintable():
        raise InvalidInput(f"file_name: expected at most {MAX_NAME} printable characters.", field="file_name")
    return name


def _checked_size(body: str, limit_bytes: int) -> int:
    if not body.strip():
        raise InvalidInput("content: empty; there is nothing to print.", field="content")
    if "\0" in body:
        raise InvalidInput("content: only text can be printed; this has NUL characters.", field="content")
    try:
        size_bytes = len(body.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"content: unpaired UTF-16 surrogate at character {error.start}.", field="content") from None
    if size_bytes > limit_bytes:
        raise InvalidInput(f"content: {size_bytes} bytes; at most {limit_bytes} are allowed.", field="content")
    return size_bytes
