"""The log of notifications to participants of contests: messages and decisions of the jury, transitions.

The order and the safe offset are those of ``store/judging/events.py``. An entry names its object; what a user may see
of it is decided when it is sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.events import EventOffset


@dataclass(frozen=True, slots=True)
class ContestEventEntry:
    """A notification to participants of a contest."""

    offset: EventOffset
    contest_id: str
    kind: str
    """``message``, ``verdict`` or ``transition``."""
    clarification_id: str | None
    submission_id: str | None
    transition: str | None
    at: int
    """When it happened; of a transition, when it was due."""


@dataclass(frozen=True, slots=True)
class NewContestEvent:
    """An entry to be appended: exactly one of clarification, submission and transition."""

    contest_id: str
    clarification_id: str | None = None
    submission_id: str | None = None
    transition: str | None = None
    at: int | None = None
    """None: now."""

    @property
    def kind(self) -> str:
        if self.clarification_id is not None:
            return "message"
        return "verdict" if self.submission_id is not None else "transition"


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of the jury with what its recipients see of it."""

    id: str
    contest_id: str
    number: int
    audience: str
    to_participant_id: str | None
    problem_id: str | None
    body: str
    created_at: int
    label: str | None
    """Of the problem."""
    asked_by: str | None
    """The participant whose question it answers."""
    question_number: int | None


APPEND = Statement(
    "contest_event_log.append",
    "Append notifications to the log of contest events.",
    """
    INSERT INTO contest_event_log (contest_id, kind, clarification_id, submission_id, transition, at)
    SELECT given_contest_id, given_kind, given_clarification_id, given_submission_id, given_transition,
           COALESCE(given_at, {now})
    FROM {given}
    """,
    input_columns={
        "given_contest_id": "text",
        "given_kind": "text",
        "given_clarification_id": "text",
        "given_submission_id": "text",
        "given_transition": "text",
        "given_at": "bigint",
    },
)
SAFE_OFFSET = Statement(
    "contest_event_log.safe_offset",
    "Find the offset below which no entry for participants can still appear.",
    "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS xid, CAST(0 AS bigint) AS id",
    sqlite_sql="SELECT 0 AS xid, COALESCE(max(id), 0) + 1 AS id FROM contest_event_log",
)
_SAFE = "log.xid < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
_SINCE = "SELECT {columns:log} FROM contest_event_log AS log WHERE (log.xid, log.id) >= (:from_xid, :from_id)"
_IN_ORDER = " ORDER BY log.xid, log.id LIMIT :limit"
SINCE = Statement(
    "contest_event_log.since",
    "List the entries for participants since an offset.",
    f"{_SINCE} AND {_SAFE} {_IN_ORDER}",
    sqlite_sql=_SINCE + _IN_ORDER,
    row=ContestEventEntry,
)
_OF_USER = (
    " AND log.contest_id IN (SELECT contest_id FROM participant_members WHERE participant_members.user_id = :user_id)"
)
SINCE_OF_USER = Statement(
    "contest_event_log.since_of_user",
    "List the entries of the contests that a user takes part in since an offset.",
    f"{_SINCE} {_OF_USER} AND {_SAFE} {_IN_ORDER}",
    sqlite_sql=_SINCE + _OF_USER + _IN_ORDER,
    row=ContestEventEntry,
)
MEMBERS = Statement(
    "contest_event_log.members",
    "Find which of the given pairs are a contest and a user who takes part in it.",
    """
    SELECT DISTINCT given_contest_id AS contest_id, given_user_id AS user_id FROM {given} JOIN participant_members
      ON participant_members.contest_id = given_contest_id AND participant_members.user_id = given_user_id
    """,
    input_columns={"given_contest_id": "text", "given_user_id": "text"},
)
OWNERS = Statement(
    "contest_event_log.owners",
    "Find the authors of submissions and the members of the participants who made them.",
    """
    SELECT given_id AS submission_id, submissions.user_id AS author_id, participant_members.user_id AS member_id
    FROM {given} JOIN submissions ON submissions.id = given_id
    JOIN contest_submissions ON contest_submissions.submission_id = given_id
    LEFT JOIN participant_members ON participant_members.participant_id = contest_submissions.participant_id
    """,
    input_columns={"given_id": "text"},
)
MESSAGES = Statement(
    "contest_event_log.messages",
    "Read messages of juries with their problems and questions.",
    """
    SELECT {columns:clarifications} FROM {given} JOIN clarifications ON clarifications.id = given_id
    LEFT JOIN clarifications AS questions ON questions.id = clarifications.reply_to_id
    LEFT JOIN contest_problems ON contest_problems.contest_id = clarifications.contest_id
      AND contest_problems.problem_id = clarifications.problem_id
    """,
    input_columns={"given_id": "text"},
    row=SentMessage,
    columns={
        "label": "contest_problems.label",
        "asked_by": "questions.from_participant_id",
        "question_number": "questions.number",
    },
)
GROUP_RECIPIENTS = Statement(
    "contest_event_log.group_recipients",
    "Find which of the given participants are in a group that a message is sent to.",
    """
    SELECT DISTINCT given_id AS clarification_id, participant_id FROM {given}
    JOIN clarification_groups ON clarification_groups.clarification_id = given_id
    JOIN contest_group_members ON contest_group_members.group_id = clarification_groups.group_id
      AND contest_group_members.participant_id = given_participant_id
    """,
    input_columns={"given_id": "text", "given_participant_id": "text"},
)


async def append(tx: Tx, entries: Sequence[NewContestEvent]) -> None:
    """Append entries and notify the readers."""
    if not entries:
        return
    values = [
        (item.contest_id, item.kind, item.clarification_id, item.submission_id, item.transition, item.at)
        for item in entries
    ]
    await tx.execute(APPEND, values)
    tx.notify(CHANNEL_JUDGING)


async def safe_offset(tx: Tx) -> EventOffset:
    """The offset up to which the log may be read in this snapshot."""
    (row,) = await tx.fetch(SAFE_OFFSET)
    return EventOffset(row["xid"], row["id"])


async def read_since(tx: Tx, start: EventOffset, *, limit: int, user_id: str | None = None) -> list[ContestEventEntry]:
    """The entries from ``start`` on, in order: of all contests, or of those that a user takes part in."""
    if user_id is None:
        return await tx.fetch(SINCE, from_xid=start.xid, from_id=start.id, limit=limit)
    return await tx.fetch(SINCE_OF_USER, from_xid=start.xid, from_id=start.id, limit=limit, user_id=user_id)


async def find_members(tx: Tx, contest_ids: Collection[str], user_ids: Collection[str]) -> dict[str, set[str]]:
    """By contest, which of the users take part in it."""
    pairs = [(contest_id, user_id) for contest_id in contest_ids for user_id in user_ids]
    members: defaultdict[str, set[str]] = defaultdict(set)
    for row in await tx.fetch(MEMBERS, pairs) if pairs else []:
        members[row["contest_id"]].add(row["user_id"])
    return members


async def find_owners(tx: Tx, submission_ids: Collection[str]) -> dict[str, set[str]]:
    """By submission of a contest, its author and the members of its participant."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for row in await tx.fetch(OWNERS, [(item,) for item in submission_ids]) if submission_ids else []:
        owners[row["submission_id"]].update(filter(None, (row["author_id"], row["member_id"])))
    return owners


async def read_messages(tx: Tx, clarification_ids: Sequence[str]) -> dict[str, SentMessage]:
    """Messages by id."""
    rows = await tx.fetch(MESSAGES, [(item,) for item in clarification_ids]) if clarification_ids else []
    return {row.id: row for row in rows}


async def find_group_recipients(
    tx: Tx, clarification_ids: Collection[str], participant_ids: Collection[str]
) -> set[tuple[str, str]]:
    """The pairs of message and participant in which the message is sent to a group of the participant."""
    pairs = [(item, participant_id) for item in clarification_ids for participant_id in participant_ids]
    rows = await tx.fetch(GROUP_RECIPIENTS, pairs) if pairs else []
    return {(row["clarification_id"], row["participant_id"]) for row in rows}
