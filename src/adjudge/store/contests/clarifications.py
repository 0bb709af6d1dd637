"""Clarifications: questions to the jury, answers, announcements, canned answers.

An announcement is a clarification of the jury that answers nothing. Recipients are the jury, one participant, groups
or all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from adjudge.domain.errors import Conflict, NotFound
from adjudge.store.contests.activity_models import CannedAnswerRow, ClarificationRow, NewClarification, UnreadMessage
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_SCOREBOARD
from adjudge.store.engine.statement import Statement

TAKE_NUMBER = Statement(
    "clarifications.take_number",
    "Take a number for a clarification.",
    """
    UPDATE contest_counters SET next_clarification = next_clarification + 1 WHERE contest_id = :contest_id
    RETURNING next_clarification
    """,
)
INSERT = Statement(
    "clarifications.insert",
    "Create a clarification.",
    """
    INSERT INTO clarifications (id, contest_id, number, from_participant_id, audience, to_participant_id, reply_to_id,
                                problem_id, category, body, created_by, created_at)
    VALUES (:id, :contest_id, :number, :from_participant_id, :audience, :to_participant_id, :reply_to_id, :problem_id,
            :category, :body, :created_by, {now})
    """,
)
INSERT_GROUPS = Statement(
    "clarifications.insert_groups",
    "Add the groups that a clarification is sent to.",
    """
    INSERT INTO clarification_groups (clarification_id, group_id)
    SELECT given_clarification_id, given_group_id FROM {given}
    """,
    input_columns={"given_clarification_id": "text", "given_group_id": "text"},
)
GROUPS = Statement(
    "clarifications.groups",
    "List the groups that clarifications are sent to.",
    """
    SELECT clarification_id, code FROM {given} JOIN clarification_groups ON clarification_id = given_id
    JOIN contest_groups ON contest_groups.id = group_id ORDER BY code
    """,
    input_columns={"given_id": "text"},
)
RECENT_QUESTIONS = Statement(
    "clarifications.recent_questions",
    "Count the questions of a participant within a time, and how long ago the oldest of them is.",
    """
    SELECT count(*) AS count, {now} - min(created_at) AS oldest_us FROM clarifications
    WHERE contest_id = :contest_id AND from_participant_id = :participant_id
      AND created_at > {now} - CAST(:within_us AS bigint)
    """,
)
MARK_ANSWERED = Statement(
    "clarifications.mark_answered",
    "Mark a question as answered.",
    """
    UPDATE clarifications SET answered_at = COALESCE(answered_at, {now}), version = version + 1
    WHERE id = :id AND contest_id = :contest_id AND audience = 'jury'
    """,
)
CLAIM = Statement(
    "clarifications.claim",
    "Claim an unanswered question that nobody else has claimed, or release it.",
    """
    UPDATE clarifications SET claimed_by = :claimed_by, version = version + 1
    WHERE id = :id AND contest_id = :contest_id AND audience = 'jury' AND answered_at IS NULL
      AND (claimed_by IS NULL OR claimed_by = :user_id)
    """,
)
FIND = Statement(
    "clarifications.find",
    "Read a clarification.",
    "SELECT {columns} FROM clarifications WHERE id = :id AND contest_id = :contest_id",
    row=ClarificationRow,
)
PAGE = Statement(
    "clarifications.page",
    "List the clarifications of a contest, newest first, keyset-paginated.",
    """
    SELECT {columns} FROM clarifications WHERE contest_id = :contest_id AND number < :before
      AND (CAST(:category AS text) IS NULL OR category = :category)
      AND (CAST(:problem_id AS text) IS NULL OR problem_id = :problem_id)
      AND (CAST(:only_open AS bigint) = 0 OR (audience = 'jury' AND answered_at IS NULL))
    ORDER BY number DESC LIMIT :limit
    """,
    row=ClarificationRow,
)
_VISIBLE = """
    contest_id = :contest_id AND number < :before
      AND (CAST(:without_problem AS bigint) = 0 OR problem_id IS NULL)
      AND (audience = 'all'
           OR (CAST(:participant_id AS text) IS NOT NULL AND (
               from_participant_id = :participant_id OR to_participant_id = :participant_id
               OR (audience = 'groups' AND EXISTS (
                   SELECT 1 FROM clarification_groups JOIN contest_group_members
                     ON contest_group_members.group_id = clarification_groups.group_id
                   WHERE clarification_id = clarifications.id
                     AND contest_group_members.participant_id = :participant_id)))))
    """
PAGE_VISIBLE = Statement(
    "clarifications.page_visible",
    "List the clarifications that a participant or visitor may see, newest first, keyset-paginated.",
    f"SELECT {{columns}} FROM clarifications WHERE {_VISIBLE} ORDER BY number DESC LIMIT :limit",
    row=ClarificationRow,
)
COUNT_UNREAD = Statement(
    "clarifications.count_unread",
    "Count the clarifications that a participant may see and has not read, without its own questions.",
    f"""
    SELECT count(*) AS count FROM clarifications
    WHERE {_VISIBLE} AND number > :after AND from_participant_id IS NULL
    """,
)
UNREAD = Statement(
    "clarifications.unread",
    "List the newest clarifications that a participant may see and has not read, without its own questions.",
    f"""
    SELECT {{columns}} FROM clarifications WHERE {_VISIBLE} AND number > :after AND from_participant_id IS NULL
    ORDER BY number DESC LIMIT :limit
    """,
    row=UnreadMessage,
    columns={
        "asked_by": "(SELECT question.from_participant_id FROM clarifications AS question"
        " WHERE question.id = clarifications.reply_to_id)"
    },
)
COUNT_OPEN = Statement(
    "clarifications.count_open",
    "Count unanswered questions of a contest.",
    """
    SELECT count(*) AS count FROM clarifications
    WHERE contest_id = :contest_id AND audience = 'jury' AND answered_at IS NULL
    """,
)
INSERT_CANNED = Statement(
    "canned_answers.insert",
    "Create canned answers.",
    """
    INSERT INTO canned_answers (id, contest_id, ordinal, title, body)
    SELECT given_id, given_contest_id, given_ordinal, given_title, given_body FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_contest_id": "text",
        "given_ordinal": "bigint",
        "given_title": "text",
        "given_body": "text",
    },
)
CANNED = Statement(
    "canned_answers.list",
    "List the canned answers of a contest.",
    "SELECT {columns} FROM canned_answers WHERE contest_id = :contest_id ORDER BY ordinal, title",
    row=CannedAnswerRow,
)
DELETE_CANNED = Statement(
    "canned_answers.delete",
    "Delete a canned answer.",
    "DELETE FROM canned_answers WHERE id = :id AND contest_id = :contest_id",
)


async def insert(tx: Tx, item: NewClarification) -> int:
    """Create a clarification; an answer marks its question as answered. Return its number."""
    taken = await fetch_one(tx, TAKE_NUMBER, contest_id=item.contest_id)
    if taken is None:
        raise NotFound("contest", item.contest_id)
    number = int(taken["next_clarification"]) - 1
    await tx.execute(
        INSERT,
        id=item.id,
        contest_id=item.contest_id,
        number=number,
        from_participant_id=item.from_participant_id,
        audience=item.audience,
        to_participant_id=item.to_participant_id,
        reply_to_id=item.reply_to_id,
        problem_id=item.problem_id,
        category=item.category,
        body=item.body,
        created_by=item.created_by,
    )
    if item.group_ids:
        await tx.execute(INSERT_GROUPS, [(item.id, group_id) for group_id in item.group_ids])
    if item.reply_to_id is not None:
        await tx.execute(MARK_ANSWERED, id=item.reply_to_id, contest_id=item.contest_id)
    tx.notify(CHANNEL_SCOREBOARD)
    return number


async def recent_questions(tx: Tx, contest_id: str, participant_id: str, *, within_us: int) -> tuple[int, int]:
    """How many questions a participant asked within a time, and how long ago the oldest of them was asked."""
    (row,) = await tx.fetch(RECENT_QUESTIONS, contest_id=contest_id, participant_id=participant_id, within_us=within_us)
    return int(row["count"]), int(row["oldest_us"] or 0)


async def mark_answered(tx: Tx, contest_id: str, clarification_id: str) -> None:
    """Mark a question as answered without a reply."""
    if not await tx.execute(MARK_ANSWERED, id=clarification_id, contest_id=contest_id):
        raise NotFound("clarification", clarification_id)


async def claim(tx: Tx, contest_id: str, clarification_id: str, user_id: str, *, release: bool = False) -> None:
    """Claim a question, or release it; one that is answered or claimed by somebody else is a Conflict."""
    claimed_by = None if release else user_id
    changed = await tx.execute(
        CLAIM, id=clarification_id, contest_id=contest_id, claimed_by=claimed_by, user_id=user_id
    )
    if not changed:
        await find(tx, contest_id, clarification_id)
        raise Conflict("The question is answered, or claimed by somebody else.")


async def find(tx: Tx, contest_id: str, clarification_id: str) -> ClarificationRow:
    """Read a clarification."""
    row = await fetch_one(tx, FIND, id=clarification_id, contest_id=contest_id)
    if row is None:
        raise NotFound("clarification", clarification_id)
    return row


async def page(
    tx: Tx,
    contest_id: str,
    *,
    before: int = 2**62,
    limit: int,
    category: str | None = None,
    problem_id: str | None = None,
    only_open: bool = False,
) -> list[ClarificationRow]:
    """List all clarifications, for the jury; ``before`` is the last number of the previous page."""
    return await tx.fetch(
        PAGE,
        contest_id=contest_id,
        before=before,
        limit=limit,
        category=category,
        problem_id=problem_id,
        only_open=int(only_open),
    )


async def page_visible(
    tx: Tx,
    contest_id: str,
    participant_id: str | None,
    *,
    before: int = 2**62,
    limit: int,
    without_problem: bool = False,
) -> list[ClarificationRow]:
    """List what a participant may see: its own, those to it or its groups, those to all; a visitor only the last."""
    return await tx.fetch(
        PAGE_VISIBLE,
        contest_id=contest_id,
        participant_id=participant_id,
        before=before,
        limit=limit,
        without_problem=int(without_problem),
    )


async def groups_of(tx: Tx, clarification_ids: Sequence[str]) -> dict[str, list[str]]:
    """The codes of the groups that clarifications are sent to."""
    found: dict[str, list[str]] = {item: [] for item in clarification_ids}
    for row in await tx.fetch(GROUPS, [(item,) for item in clarification_ids]) if clarification_ids else ():
        found[row["clarification_id"]].append(row["code"])
    return found


async def count_unread(
    tx: Tx, contest_id: str, participant_id: str | None, after: int, *, without_problem: bool = False
) -> int:
    """Count what a participant may see and has not read."""
    (row,) = await tx.fetch(
        COUNT_UNREAD,
        contest_id=contest_id,
        participant_id=participant_id,
        after=after,
        before=2**62,
        without_problem=int(without_problem),
    )
    return int(row["count"])


async def unread(
    tx: Tx, contest_id: str, participant_id: str | None, after: int, *, limit: int, without_problem: bool = False
) -> list[UnreadMessage]:
    """The newest of what ``count_unread`` counts."""
    return await tx.fetch(
        UNREAD,
        contest_id=contest_id,
        participant_id=participant_id,
        after=after,
        before=2**62,
        limit=limit,
        without_problem=int(without_problem),
    )


async def count_open(tx: Tx, contest_id: str) -> int:
    """Count unanswered questions."""
    (row,) = await tx.fetch(COUNT_OPEN, contest_id=contest_id)
    return int(row["count"])


async def insert_canned(tx: Tx, items: Sequence[CannedAnswerRow]) -> None:
    """Create canned answers."""
    if items:
        await tx.execute(INSERT_CANNED, [astuple(item) for item in items])


async def canned_answers(tx: Tx, contest_id: str) -> Sequence[CannedAnswerRow]:
    """The canned answers of a contest."""
    return await tx.fetch(CANNED, contest_id=contest_id)


async def delete_canned(tx: Tx, contest_id: str, answer_id: str) -> None:
    """Delete a canned answer."""
    if not await tx.execute(DELETE_CANNED, id=answer_id, contest_id=contest_id):
        raise NotFound("canned_answer", answer_id)
