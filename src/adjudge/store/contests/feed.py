"""The event feeds of contests: their progress, their events, and what changed in a contest since they were filled.

A feed is one view of one contest. Its events are numbered without gaps in the order of their commits, because every
write of a feed requires the version of its row that was read. The last event of an object that exists is *live*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.notify import CHANNEL_FEED
from adjudge.store.engine.rows import column_values
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.events import EventOffset


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A feed and how far it is filled."""

    id: str
    contest_id: str
    view: str
    last_sequence: int
    last_number: int
    """All submissions up to this number were compared since the last change that concerns all of them."""
    status_xid: int
    status_id: int
    board_xid: int
    board_id: int
    phase_marker: str
    """What all objects depend on: the version of the contest, its phase."""
    data_marker: str
    """A fingerprint of the data other than submissions."""
    awards_due: bool
    data_at: int
    awards_at: int
    logs_at: int
    requests: int
    """How many clients have opened the feed."""
    served: int
    """The events contain everything that was committed before this request."""
    read_at: int
    """When a client last asked for it."""
    is_final: bool
    """The end of updates was sent: there are no more events."""
    version: int
    now_us: int
    """The clock of the database, not later than the snapshot in which the row was read."""

    @property
    def status_offset(self) -> EventOffset:
        """How far the log of submissions was read."""
        return EventOffset(self.status_xid, self.status_id)

    @property
    def board_offset(self) -> EventOffset:
        """How far the log of the scoreboard was read."""
        return EventOffset(self.board_xid, self.board_id)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a feed."""

    sequence: int
    collection: str
    object_id: str
    data: str | None
    """JSON in the newest version of the API; None if the object was deleted."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    """The last event of an object that exists."""

    sequence: int
    part: str
    collection: str
    object_id: str
    data: str


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended."""

    part: str
    """What is compared together: a submission with its judgements, or a collection."""
    collection: str
    object_id: str
    data: str | None


@dataclass(frozen=True, slots=True)
class FeedHead:
    """The end of a feed."""

    id: str
    last_sequence: int
    served: int


@dataclass(frozen=True, slots=True)
class NumberedSubmission:
    """A submission and its number in the contest."""

    submission_id: str
    number: int


@dataclass(frozen=True, slots=True)
class ChangedSubmission:
    """An entry of the log of submissions."""

    offset: EventOffset
    submission_id: str
    number: int


OPEN = Statement(
    "contest_feeds.open",
    "Create the feed of a view of a contest, or record that a client reads it.",
    """
    INSERT INTO contest_feeds (id, contest_id, view, requests, read_at, created_at)
    VALUES (:id, :contest_id, :view, 1, {now}, {now})
    ON CONFLICT (contest_id, view) DO UPDATE SET read_at = {now}, requests = contest_feeds.requests + 1
    RETURNING {columns}
    """,
    row=FeedRow,
    columns={"now_us": "{now}"},
)
FIND = Statement(
    "contest_feeds.find",
    "Read a feed.",
    "SELECT {columns} FROM contest_feeds WHERE id = :id",
    row=FeedRow,
    columns={"now_us": "{now}"},
)
READ = Statement(
    "contest_feeds.read",
    "Record that clients read feeds.",
    "UPDATE contest_feeds SET read_at = {now} FROM {given} WHERE id = given_id",
    input_columns={"given_id": "text"},
)
ACTIVE = Statement(
    "contest_feeds.active",
    "List the feeds that clients have read recently and that can still change.",
    "SELECT id FROM contest_feeds WHERE read_at > {now} - CAST(:idle_us AS bigint) AND NOT is_final ORDER BY id",
)
HEADS = Statement(
    "contest_feeds.heads",
    "Read the ends of feeds.",
    "SELECT {columns} FROM {given} JOIN contest_feeds ON id = given_id",
    input_columns={"given_id": "text"},
    row=FeedHead,
)
ADVANCE = Statement(
    "contest_feeds.advance",
    "Store how far a feed is filled if its version is unchanged.",
    """
    UPDATE contest_feeds SET last_sequence = :last_sequence, last_number = :last_number, status_xid = :status_xid,
        status_id = :status_id, board_xid = :board_xid, board_id = :board_id, phase_marker = :phase_marker,
        data_marker = :data_marker, awards_due = :awards_due, data_at = :data_at, awards_at = :awards_at,
        logs_at = :logs_at, served = :served, is_final = :is_final, version = version + 1
    WHERE id = :id AND version = :version
    """,
)
AFTER = Statement(
    "contest_feed_events.after",
    "List the events of a feed after a sequence number.",
    """
    SELECT {columns} FROM contest_feed_events WHERE feed_id = :feed_id AND sequence > :after
    ORDER BY sequence LIMIT :limit
    """,
    row=StoredEvent,
)
LIVE = Statement(
    "contest_feed_events.live",
    "List the last events of the objects that exist, of parts of a feed.",
    """
    SELECT {columns} FROM contest_feed_events
    WHERE feed_id = :feed_id AND part IN (SELECT given_part FROM {given}) AND is_live
    """,
    input_columns={"given_part": "text"},
    row=LiveObject,
)
SUPERSEDE = Statement(
    "contest_feed_events.supersede",
    "Mark events that a later one of the same object replaces.",
    """
    UPDATE contest_feed_events SET is_live = false FROM {given}
    WHERE feed_id = :feed_id AND sequence = given_sequence
    """,
    input_columns={"given_sequence": "bigint"},
)
DELETE_EARLIER = Statement(
    "contest_feed_events.delete_earlier",
    "Delete the earlier events of objects that are no longer visible.",
    """
    DELETE FROM contest_feed_events WHERE feed_id = :feed_id AND part IN (SELECT given_part FROM {given})
      AND (part, collection, object_id) IN (SELECT given_part, given_collection, given_object_id FROM {given})
    """,
    input_columns={"given_part": "text", "given_collection": "text", "given_object_id": "text"},
)
APPEND = Statement(
    "contest_feed_events.append",
    "Append events to a feed.",
    """
    INSERT INTO contest_feed_events (feed_id, sequence, part, collection, object_id, data, is_live)
    SELECT :feed_id, given_sequence, given_part, given_collection, given_object_id, given_data, given_data IS NOT NULL
    FROM {given}
    """,
    input_columns={
        "given_sequence": "bigint",
        "given_part": "text",
        "given_collection": "text",
        "given_object_id": "text",
        "given_data": "text",
    },
)
CHANGED = Statement(
    "contest_feeds.changed_submissions",
    "List status changes of the submissions of a contest from an offset on, also above the safe offset.",
    """
    SELECT {columns:log} FROM submission_status_log AS log
    JOIN contest_submissions ON contest_submissions.submission_id = log.submission_id
    WHERE contest_id = :contest_id
      AND (log.xid, log.id) >= (:from_xid, :from_id) ORDER BY log.xid, log.id LIMIT :limit
    """,
    row=ChangedSubmission,
    columns={"number": "contest_submissions.number"},
)
NEXT_SUBMISSIONS = Statement(
    "contest_feeds.next_submissions",
    "List the submissions of a contest after a number, in number order.",
    """
    SELECT {columns} FROM contest_submissions WHERE contest_id = :contest_id AND number > :after
    ORDER BY number LIMIT :limit
    """,
    row=NumberedSubmission,
)
NUMBERS = Statement(
    "contest_feeds.numbers",
    "Find the numbers of submissions.",
    "SELECT {columns} FROM {given} JOIN contest_submissions ON submission_id = given_id",
    input_columns={"given_id": "text"},
    row=NumberedSubmission,
)
OF_PARTICIPANTS = Statement(
    "contest_feeds.submissions_of_participants",
    "List the submissions of participants with their numbers.",
    "SELECT {columns} FROM {given} JOIN contest_submissions ON participant_id = given_id",
    input_columns={"given_id": "text"},
    row=NumberedSubmission,
)


def _count(table: str, total: str = "version") -> str:
    """The number of rows of a table that belong to the contest, and the sum of their versions."""
    return (
        f"(SELECT CAST(count(*) AS text) || ':' || CAST(COALESCE(sum({total}), 0) AS text) FROM {table} "
        "WHERE contest_id = :contest_id)"
    )


_OPEN_PROBLEMS = """(SELECT CAST(count(*) AS text) FROM contest_problems
    WHERE contest_id = :contest_id AND opens_ct_us <= CAST(:contest_time_us AS bigint))"""
_DATA = [
    _count("clarifications"),
    _count("awards"),
    _count("contest_groups", "ordinal"),
    _count("contest_accounts", "0"),
]
DATA_MARKER = Statement(
    "contest_feeds.data_marker",
    "Compute a fingerprint of the clarifications, awards, groups, accounts and open problems of a contest.",
    "SELECT " + " || ',' || ".join([*_DATA, _OPEN_PROBLEMS]) + " AS marker",
)


async def open_feed(tx: Tx, feed_id: str, contest_id: str, view: str) -> FeedRow:
    """The feed of a view; it is created with ``feed_id`` if there is none, and filled from now on."""
    (row,) = await tx.fetch(OPEN, id=feed_id, contest_id=contest_id, view=view)
    tx.notify(CHANNEL_FEED)
    return row


async def find(tx: Tx, feed_id: str) -> FeedRow | None:
    """A feed; None if its contest was deleted."""
    return await fetch_one(tx, FIND, id=feed_id)


async def record_read(tx: Tx, feed_ids: Sequence[str]) -> None:
    """Record that clients read feeds, so that they are still filled."""
    await tx.execute(READ, [(item,) for item in sorted(feed_ids)])


async def active(tx: Tx, *, idle_us: int) -> list[str]:
    """The feeds to fill: not those that nobody has read for ``idle_us``."""
    return [row["id"] for row in await tx.fetch(ACTIVE, idle_us=idle_us)]


async def heads(tx: Tx, feed_ids: Sequence[str]) -> list[FeedHead]:
    """The ends of feeds."""
    return await tx.fetch(HEADS, [(item,) for item in feed_ids])


async def after(tx: Tx, feed_id: str, sequence: int, *, limit: int) -> list[StoredEvent]:
    """The events after a sequence number, in order."""
    return await tx.fetch(AFTER, feed_id=feed_id, after=sequence, limit=limit)


async def live(tx: Tx, feed_id: str, parts: Sequence[str]) -> list[LiveObject]:
    """The last events of the objects of parts that exist."""
    return await tx.fetch(LIVE, [(item,) for item in parts], feed_id=feed_id) if parts else []


async def advance(tx: Tx, feed: FeedRow, events: Sequence[NewEvent], superseded: Sequence[int]) -> bool:
    """Append events and store the progress, if nobody else has written the feed; return whether this was done.

    ``feed`` has the version that was read and the new progress, without the new events. An object that is deleted
    leaves only the event of its deletion: it may have been hidden.
    """
    last = feed.last_sequence + len(events)
    if not await tx.execute(ADVANCE, **{**column_values(feed), "last_sequence": last}):
        return False
    if superseded:
        await tx.execute(SUPERSEDE, [(item,) for item in superseded], feed_id=feed.id)
    deleted = [(item.part, item.collection, item.object_id) for item in events if item.data is None]
    if deleted:
        await tx.execute(DELETE_EARLIER, deleted, feed_id=feed.id)
    if events:
        first = feed.last_sequence + 1
        rows = [(first + i, item.part, item.collection, item.object_id, item.data) for i, item in enumerate(events)]
        await tx.execute(APPEND, rows, feed_id=feed.id)
    tx.notify(CHANNEL_FEED)
    return True


async def changed_submissions(tx: Tx, contest_id: str, start: EventOffset, *, limit: int) -> list[ChangedSubmission]:
    """The committed status changes of submissions of a contest from ``start`` on, in order."""
    return await tx.fetch(CHANGED, contest_id=contest_id, from_xid=start.xid, from_id=start.id, limit=limit)


async def next_submissions(tx: Tx, contest_id: str, *, number: int, limit: int) -> list[NumberedSubmission]:
    """The submissions after a number; none with a smaller number can appear later (the counter is locked)."""
    return await tx.fetch(NEXT_SUBMISSIONS, contest_id=contest_id, after=number, limit=limit)


async def numbers(tx: Tx, submission_ids: Sequence[str]) -> list[NumberedSubmission]:
    """The numbers of submissions."""
    return await tx.fetch(NUMBERS, [(item,) for item in submission_ids]) if submission_ids else []


async def of_participants(tx: Tx, participant_ids: Sequence[str]) -> list[NumberedSubmission]:
    """All submissions of participants."""
    return await tx.fetch(OF_PARTICIPANTS, [(item,) for item in participant_ids]) if participant_ids else []


async def data_marker(tx: Tx, contest_id: str, *, contest_time_us: int) -> str:
    """A fingerprint of the data of a contest other than submissions and participants, which have logs."""
    (row,) = await tx.fetch(DATA_MARKER, contest_id=contest_id, contest_time_us=contest_time_us)
    marker: str = row["marker"]
    return marker
