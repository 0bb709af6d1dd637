"""Tables of the scoreboard: cells and rows in two views, and the log of their changes.

The views are *jury* (everything) and *public* (submissions since the freeze are pending). A cell is a JSON text in
canonical form, so that a change of a view is a change of its bytes; ``contests/formats/base.py`` defines it.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, PrimaryKeyConstraint, Table

from adjudge.store.engine.columns import (
    METADATA,
    SERIAL,
    CurrentTransactionId,
    check_one_of,
    foreign_key,
    integer_column,
    text_column,
    timestamp_column,
)

VIEWS = ("jury", "public")
LOG_KINDS = ("cells", "participant", "submission", "reset")

scoreboard_cells = Table(
    "scoreboard_cells",
    METADATA,
    foreign_key("participant_id", "participants", ondelete="CASCADE"),
    foreign_key("problem_id", "problems"),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("jury"),
    text_column("public"),
    integer_column("jury_version", None),
    integer_column("public_version", None),
    PrimaryKeyConstraint("participant_id", "problem_id"),
    Index(None, "contest_id"),
)

scoreboard_rows = Table(
    "scoreboard_rows",
    METADATA,
    foreign_key("participant_id", "participants", ondelete="CASCADE"),
    text_column("view"),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    integer_column("k1", None),
    integer_column("k2", None),
    integer_column("k3", None),
    integer_column("version", None),
    PrimaryKeyConstraint("participant_id", "view"),
    check_one_of("view", VIEWS),
    Index(None, "contest_id", "view"),
)

scoreboard_log = Table(
    "scoreboard_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("xid", BigInteger, nullable=False, server_default=CurrentTransactionId()),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("kind"),
    text_column("view", nullable=True),
    text_column("participant_id", nullable=True),
    integer_column("version"),
    text_column("payload", nullable=True),
    timestamp_column("at"),
    check_one_of("kind", LOG_KINDS),
    check_one_of("view", VIEWS),
    CheckConstraint("(kind = 'reset') = (participant_id IS NULL)", name="participant_exactly_when"),
    Index(None, "contest_id", "xid", "id"),
    Index(None, "xid", "id"),
    Index(None, "at"),
)
