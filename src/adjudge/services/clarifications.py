"""Clarifications of contests: questions to the jury, answers, announcements, canned answers, unread marks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import MINUTE_US, SECOND_US, ContestPhase, ContestRole
from adjudge.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, RateLimited
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import ContestState
from adjudge.services.contest_access import ContestAccess, ContestView, find_view
from adjudge.services.contest_notifications import notify_of_message
from adjudge.services.contest_submit import act_for
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import clarifications, event_log, participants, queries, read_marks
from adjudge.store.contests.activity_models import CannedAnswerRow, ClarificationRow, NewClarification, UnreadMessage
from adjudge.store.contests.event_log import NewContestEvent
from adjudge.store.contests.models import ContestGroupRow, ParticipantRow

JURY: Final = (ContestRole.ORGANISER, ContestRole.JUDGE)
MAX_BODY: Final = 10_000
MAX_TITLE: Final = 100
QUESTIONS_PER_MINUTE: Final = 5
_RATE_WINDOW_US: Final = MINUTE_US
_WHOLE: Final = 2**62


@dataclass(frozen=True, slots=True)
class ClarificationDetail:
    """A clarification with the names of what it refers to."""

    row: ClarificationRow
    from_participant: ParticipantRow | None
    to_participant: ParticipantRow | None
    groups: Sequence[str]
    """Codes of the groups that it is sent to."""
    label: str | None
    """Of the problem."""
    claimed_by: str | None
    """The name of the judge; only for the jury."""
    reply_to_number: int | None
    """The number of the question, if the viewer may see it."""
    is_unread: bool


@dataclass(frozen=True, slots=True)
class ClarificationList:
    """A page of clarifications, newest first."""

    view: ContestView
    items: list[ClarificationDetail]


@dataclass(frozen=True, slots=True)
class Recipients:
    """Who gets an answer or announcement: all, groups by code, or one participant by code."""

    audience: str = "all"
    groups: Sequence[str] = ()
    participant: str = ""


@dataclass(frozen=True, slots=True)
class ClarificationService:
    """Operations on clarifications."""

    database: Database
    access: ContestAccess
    new_id: IdFactory = new_id

    async def list_clarifications(
        self,
        viewer: Viewer,
        contest: str,
        *,
        before: int | None = None,
        limit: int,
        only_open: bool = False,
        category: str | None = None,
    ) -> ClarificationList:
        """Those that the viewer may see; the filters are for the jury."""

        async def read(tx: Tx) -> ClarificationList:
            view = await find_view(tx, viewer, contest)
            place = before or _WHOLE
            if view.sees_all:
                rows = await clarifications.page(
                    tx, view.contest.id, before=place, limit=limit, only_open=only_open, category=category
                )
            else:
                rows = await _visible(tx, view, before=place, limit=limit)
            return ClarificationList(view, await _details(tx, view, rows))

        return await self.database.read(read)

    async def find_question(self, viewer: Viewer, contest: str, clarification_id: str) -> ClarificationList:
        """One question, for the jury; for others every question is missing."""

        async def read(tx: Tx) -> ClarificationList:
            view = await find_view(tx, viewer, contest)
            if not view.is_jury:
                raise NotFound("clarification", clarification_id)
            return ClarificationList(view, [await _one(tx, view, clarification_id)])

        return await self.database.read(read)

    async def ask(
        self, viewer: Viewer, contest: str, body: str, *, label: str = "", category: str = "", participant: str = ""
    ) -> ClarificationDetail:
        """Ask the jury, as a participant; with ``participant``, the code of one, an organiser asks for it."""

        async def operation(tx: Tx) -> ClarificationDetail:
            view = await find_view(tx, viewer, contest)
            if participant:
                view = await act_for(tx, view, participant)
            asker = view.participant
            if asker is None:
                raise Forbidden("Only participants can ask; register for the contest first.")
            if view.phase is ContestPhase.BEFORE:
                raise Conflict("Questions can be asked when the contest has started.")
            if view.contest.state is not ContestState.PUBLISHED:
                raise Conflict("The contest is over; its jury answers no more questions.")
            new = NewClarification(
                self.new_id(),
                view.contest.id,
                "jury",
                _checked_body(body),
                viewer.id,
                from_participant_id=asker.id,
                problem_id=await _problem_id(tx, view, label),
                category=_checked_category(view, category),
            )
            asked = await _insert(tx, view, new)
            await _check_rate(tx, view, asker)
            return asked

        return await self.database.transact(operation)

    async def answer(
        self, viewer: Viewer, contest: str, clarification_id: str, body: str, recipients: Recipients
    ) -> ClarificationDetail:
        """Answer a question to who asked it, to groups or to all."""

        async def operation(tx: Tx) -> ClarificationDetail:
            view = await _find_as_jury(tx, viewer, contest)
            question = await clarifications.find(tx, view.contest.id, clarification_id)
            if question.audience != "jury":
                raise Conflict("Only questions can be answered.")
            if question.claimed_by not in (None, viewer.id):
                raise Conflict("The question is claimed by somebody else.")
            new = await self._outgoing(
                tx, view, viewer, body, recipients, problem_id=question.problem_id, question=question
            )
            return await self._send(tx, view, new, question)

        return await self.database.transact(operation)

    async def announce(
        self, viewer: Viewer, contest: str, body: str, recipients: Recipients, *, label: str = ""
    ) -> ClarificationDetail:
        """Send a message that answers no question."""

        async def operation(tx: Tx) -> ClarificationDetail:
            view = await _find_as_jury(tx, viewer, contest)
            problem_id = await _problem_id(tx, view, label)
            new = await self._outgoing(tx, view, viewer, body, recipients, problem_id=problem_id)
            return await self._send(tx, view, new)

        return await self.database.transact(operation)

    async def claim(self, viewer: Viewer, contest: str, clarification_id: str, *, release: bool) -> ClarificationDetail:
        """Claim a question so that nobody else answers it, or release it."""

        async def operation(tx: Tx) -> ClarificationDetail:
            view = await _find_as_jury(tx, viewer, contest)
            await clarifications.claim(tx, view.contest.id, clarification_id, viewer.id, release=release)
            return await _one(tx, view, clarification_id)

        return await self.database.transact(operation)

    async def close(self, viewer: Viewer, contest: str, clarification_id: str) -> ClarificationDetail:
        """Mark a question as answered without a reply."""

        async def operation(tx: Tx) -> ClarificationDetail:
            view = await _find_as_jury(tx, viewer, contest)
            await clarifications.mark_answered(tx, view.contest.id, clarification_id)
            return await _one(tx, view, clarification_id)

        return await self.database.transact(operation)

    async def count_unread(self, view: ContestView) -> int:
        """The unread clarifications of a participant, or the unanswered questions for the jury."""
        if view.viewer.user_id is None:
            return 0

        async def read(tx: Tx) -> int:
            if view.is_jury:
                return await clarifications.count_open(tx, view.contest.id)
            mark = await read_marks.read_mark(tx, view.contest.id, view.viewer.id)
            seen = _visible_to(view)
            if seen is None:
                return 0
            return await clarifications.count_unread(
                tx, view.contest.id, seen[0], mark.clarification_number, without_problem=seen[1]
            )

        return await self.database.read(read)

    async def list_unread(self, view: ContestView, *, limit: int) -> list[UnreadMessage]:
        """The newest unread answers and announcements of a participant; for the jury none."""
        seen = None if view.is_jury or view.viewer.user_id is None else _visible_to(view)
        if seen is None:
            return []

        async def read(tx: Tx) -> list[UnreadMessage]:
            mark = await read_marks.read_mark(tx, view.contest.id, view.viewer.id)
            return await clarifications.unread(
                tx, view.contest.id, seen[0], mark.clarification_number, limit=limit, without_problem=seen[1]
            )

        return await self.database.read(read)

    async def mark_read(self, viewer: Viewer, contest: str, number: int) -> None:
        """Mark the clarifications up to a number as read."""

        async def operation(tx: Tx) -> None:
            view = await find_view(tx, viewer, contest)
            await read_marks.advance_read_mark(tx, view.contest.id, viewer.id, clarification_number=number)

        await self.database.transact(operation)

    async def list_canned(self, viewer: Viewer, contest: str) -> Sequence[CannedAnswerRow]:
        """The prepared answers, for the jury."""
        view = await self.access.find_as(viewer, contest, *JURY)
        return await self.database.read(lambda tx: clarifications.canned_answers(tx, view.contest.id))

    async def list_groups(self, view: ContestView) -> list[ContestGroupRow]:
        """The groups that can be recipients."""
        return await self.database.read(lambda tx: participants.groups(tx, view.contest.id))

    async def add_canned(self, viewer: Viewer, contest: str, title: str, body: str) -> CannedAnswerRow:
        """Prepare an answer."""
        title = title.strip()
        if not 0 < len(title) <= MAX_TITLE:
            raise InvalidInput(f"title: expected 1 to {MAX_TITLE} characters.", field="title")

        async def operation(tx: Tx) -> CannedAnswerRow:
            view = await _find_as_jury(tx, viewer, contest)
            known = await clarifications.canned_answers(tx, view.contest.id)
            if any(item.title == title for item in known):
                raise Conflict(f"title: there is already a canned answer {title!r}.")
            row = CannedAnswerRow(self.new_id(), view.contest.id, len(known), title, _checked_body(body))
            await clarifications.insert_canned(tx, [row])
            return row

        return await self.database.transact(operation)

    async def delete_canned(self, viewer: Viewer, contest: str, answer_id: str) -> None:
        """Delete a prepared answer."""

        async def operation(tx: Tx) -> None:
            view = await _find_as_jury(tx, viewer, contest)
            await clarifications.delete_canned(tx, view.contest.id, answer_id)

        await self.database.transact(operation)

    async def _send(
        self, tx: Tx, view: ContestView, new: NewClarification, question: ClarificationRow | None = None
    ) -> ClarificationDetail:
        """Store a message of the jury and notify its recipients."""
        sent = await _insert(tx, view, new)
        await notify_of_message(
            tx, view, sent.row, group_ids=new.group_ids, question=question, label=sent.label, new_id=self.new_id
        )
        await event_log.append(tx, [NewContestEvent(view.contest.id, clarification_id=sent.row.id)])
        return sent

    async def _outgoing(
        self,
        tx: Tx,
        view: ContestView,
        viewer: Viewer,
        body: str,
        recipients: Recipients,
        *,
        problem_id: str | None,
        question: ClarificationRow | None = None,
    ) -> NewClarification:
        """A message of the jury."""
        to_participant_id, group_ids = None, list[str]()
        if recipients.audience == "participant":
            asker = None if question is None else question.from_participant_id
            to_participant_id = asker or await _participant_id(tx, view, recipients.participant)
        elif recipients.audience == "groups":
            group_ids = await _group_ids(tx, view, recipients.groups)
        elif recipients.audience != "all":
            raise InvalidInput("audience: expected participant, groups or all.", field="audience")
        return NewClarification(
            self.new_id(),
            view.contest.id,
            recipients.audience,
            _checked_body(body),
            viewer.id,
            to_participant_id=to_participant_id,
            group_ids=group_ids,
            reply_to_id=None if question is None else question.id,
            problem_id=problem_id,
            category=None if question is None else question.category,
        )


async def _find_as_jury(tx: Tx, viewer: Viewer, contest: str) -> ContestView:
    view = await find_view(tx, viewer, contest)
    view.require(*JURY)
    return view


async def _check_rate(tx: Tx, view: ContestView, participant: ParticipantRow) -> None:
    """Raise if a participant asks too often, the new question included: the counter of the contest is locked."""
    count, oldest_us = await clarifications.recent_questions(
        tx, view.contest.id, participant.id, within_us=_RATE_WINDOW_US
    )
    if count > QUESTIONS_PER_MINUTE:
        wait_sec = max(1, -(-(_RATE_WINDOW_US - oldest_us) // SECOND_US))
        raise RateLimited(
            f"At most {QUESTIONS_PER_MINUTE} questions per minute are allowed; ask again in {wait_sec} seconds.",
            retry_after_sec=wait_sec,
        )


def _visible_to(view: ContestView) -> tuple[str | None, bool] | None:
    """The participant whose messages the viewer sees besides those to all, and whether those of problems are hidden."""
    access = view.access(RouteClass.CLARIFICATIONS, is_own=view.participant is not None)
    if access is Access.NONE:
        return None
    own = view.participant if access is Access.BROADCASTS_AND_OWN else None
    return None if own is None else own.id, access is Access.BROADCASTS_WITHOUT_PROBLEM


async def _visible(tx: Tx, view: ContestView, *, before: int, limit: int) -> list[ClarificationRow]:
    seen = _visible_to(view)
    if seen is None:
        return []
    return await clarifications.page_visible(
        tx, view.contest.id, seen[0], before=before, limit=limit, without_problem=seen[1]
    )


async def read_visible(tx: Tx, view: ContestView) -> list[tuple[ClarificationRow, list[str]]]:
    """All clarifications that a viewer may see, each with the codes of the groups that it is sent to."""
    if view.sees_all:
        rows = await clarifications.page(tx, view.contest.id, before=_WHOLE, limit=_WHOLE)
    else:
        rows = await _visible(tx, view, before=_WHOLE, limit=_WHOLE)
    groups = await clarifications.groups_of(tx, [row.id for row in rows if row.audience == "groups"])
    return [(row, groups.get(row.id, [])) for row in rows]


async def _insert(tx: Tx, view: ContestView, new: NewClarification) -> ClarificationDetail:
    await clarifications.insert(tx, new)
    return await _one(tx, view, new.id)


async def _one(tx: Tx, view: ContestView, clarification_id: str) -> ClarificationDetail:
    row = await clarifications.find(tx, view.contest.id, clarification_id)
    return (await _details(tx, view, [row]))[0]


async def _details(tx: Tx, view: ContestView, rows: Sequence[ClarificationRow]) -> list[ClarificationDetail]:
    """The names of everything that the rows refer to, in one lookup each."""
    if not rows:
        return []
    people_ids = {item for row in rows for item in (row.from_participant_id, row.to_participant_id) if item}
    people = {row.id: row for row in await participants.find_many(tx, people_ids)}
    labels = {row.problem.problem_id: row.problem.label for row in await queries.problems(tx, view.contest.id)}
    names = await users.find_names(tx, {row.claimed_by for row in rows if row.claimed_by}) if view.sees_all else {}
    groups = await clarifications.groups_of(tx, [row.id for row in rows if row.audience == "groups"])
    user_id = view.viewer.user_id
    read_to = 0
    if user_id is not None:
        read_to = (await read_marks.read_mark(tx, view.contest.id, user_id)).clarification_number
    numbers = {row.id: row.number for row in rows}
    return [
        ClarificationDetail(
            row,
            people.get(row.from_participant_id or ""),
            people.get(row.to_participant_id or ""),
            groups.get(row.id, []),
            labels.get(row.problem_id or ""),
            names.get(row.claimed_by or ""),
            numbers.get(row.reply_to_id or ""),
            user_id is not None and row.number > read_to and (row.from_participant_id is None) is not view.is_jury,
        )
        for row in rows
    ]


def _checked_body(body: str) -> str:
    body = body.strip()
    if not 0 < len(body) <= MAX_BODY:
        raise InvalidInput(f"body: expected 1 to {MAX_BODY} characters.", field="body")
    return body


def _checked_category(view: ContestView, category: str) -> str | None:
    known = view.contest.settings.clarification_categories
    if category and category not in known:
        raise InvalidInput(f"category: expected one of {', '.join(known) or 'none'}.", field="category")
    return category or None


async def _problem_id(tx: Tx, view: ContestView, label: str) -> str | None:
    if not label:
        return None
    problems = await queries.problems(tx, view.contest.id) if view.sees_problems or view.is_jury else []
    found = next((row.problem.problem_id for row in problems if row.problem.label == label), None)
    if found is None:
        raise InvalidInput(f"problem: there is no problem {label[:36]!r} in this contest.", field="problem")
    return found


async def _participant_id(tx: Tx, view: ContestView, code: str) -> str:
    found = (await participants.find_by_codes(tx, view.contest.id, [code])).get(code)
    if found is None:
        raise InvalidInput(f"participant: there is no participant {code[:36]!r}.", field="participant")
    return found.id


async def _group_ids(tx: Tx, view: ContestView, codes: Collection[str]) -> list[str]:
    known = {row.code: row.id for row in await participants.groups(tx, view.contest.id)}
    if not codes:
        raise InvalidInput("groups: give at least one group.", field="groups")
    for code in codes:
        if code not in known:
            raise InvalidInput(f"groups: there is no group {code[:36]!r}.", field="groups")
    return [known[code] for code in dict.fromkeys(codes)]
