"""Tables of the event feeds of contests: one feed for each view that somebody has asked for, and its events."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, false

from adjudge.store.engine.columns import (
    METADATA,
    check_one_of,
    foreign_key,
    id_column,
    integer_column,
    text_column,
    timestamp_column,
)

FEED_VIEWS = ("jury", "participant", "visitor")

contest_feeds = Table(
    "contest_feeds",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("view"),
    integer_column("last_sequence"),
    # How far the changes of the contest were compared with the events.
    integer_column("last_number"),
    integer_column("status_xid"),
    integer_column("status_id"),
    integer_column("board_xid"),
    integer_column("board_id"),
    text_column("phase_marker", default=""),
    text_column("data_marker", default=""),
    Column("awards_due", Boolean, nullable=False, server_default=false()),
    *(integer_column(name) for name in ("data_at", "awards_at", "logs_at")),
    # Requests of clients, and how many of them were made before everything in the feed was read.
    integer_column("requests"),
    integer_column("served"),
    timestamp_column("read_at"),
    Column("is_final", Boolean, nullable=False, server_default=false()),
    integer_column("version", 1),
    timestamp_column("created_at"),
    UniqueConstraint("contest_id", "view"),
    check_one_of("view", FEED_VIEWS),
    Index(None, "read_at"),
)

contest_feed_events = Table(
    "contest_feed_events",
    METADATA,
    foreign_key("feed_id", "contest_feeds", ondelete="CASCADE"),
    integer_column("sequence", None),
    text_column("part"),
    text_column("collection"),
    text_column("object_id"),
    text_column("data", nullable=True),
    Column("is_live", Boolean, nullable=False),
    PrimaryKeyConstraint("feed_id", "sequence"),
    Index(None, "feed_id", "part"),
)
