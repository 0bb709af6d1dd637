"""Tables of contests: settings, roles, problems, removed intervals, logs."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    false,
    text,
    true,
)

from adjudge.domain.contest import (
    ContestFeedback,
    ContestFormat,
    ContestRole,
    ContestVisibility,
    ParticipantKind,
    RegistrationMode,
    ScoreboardVisibility,
)
from adjudge.domain.states import CONTEST, ContestState
from adjudge.store.engine.columns import (
    METADATA,
    SERIAL,
    CurrentTransactionId,
    check_one_of,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    log_foreign_key,
    partial_index,
    text_column,
    timestamp_column,
)

LATE_POLICIES = ("refuse", "unofficial")
TRANSITIONS = ("start", "freeze", "end", "thaw", "finalize", "end_of_updates")

MAY_HIDE_RESULTS = (
    "end_of_updates_at IS NULL AND (state <> 'finalized' "
    "OR (thaw_at IS NULL AND (freeze_ct_us IS NOT NULL OR frozen_at IS NOT NULL)))"
)
"""Contests that are not certainly thawed: a finalized one has ended for all, and nothing of its times changes."""

contests = Table(
    "contests",
    METADATA,
    id_column(),
    text_column("slug"),
    text_column("title"),
    text_column("description", default=""),
    text_column("state", default=CONTEST.initial.value),
    text_column("format", default="icpc"),
    json_column("format_cfg", default=text("'{}'")),
    # Times; the phase is a function of them, of the removed intervals and of the database clock (contests/clock.py).
    timestamp_column("starts_at", nullable=True),
    integer_column("countdown_pause_us", None, nullable=True),
    integer_column("duration_us", None),
    integer_column("freeze_ct_us", None, nullable=True),
    timestamp_column("frozen_at", nullable=True),
    timestamp_column("thaw_at", nullable=True),
    integer_column("window_us", None, nullable=True),
    timestamp_column("finalized_at", nullable=True),
    timestamp_column("end_of_updates_at", nullable=True),
    # Who sees and does what.
    text_column("visibility", default="public"),
    text_column("scoreboard_visibility", default="public"),
    text_column("feedback", default="full"),
    Column("problems_public", Boolean, nullable=False, server_default=false()),
    Column("submissions_public", Boolean, nullable=False, server_default=false()),
    Column("materials_public", Boolean, nullable=False, server_default=false()),
    Column("contest_only", Boolean, nullable=False, server_default=false()),
    timestamp_column("contest_only_from", nullable=True),
    timestamp_column("contest_only_until", nullable=True),
    json_column("address_ranges", nullable=True),
    # Registration.
    text_column("registration", default="open"),
    text_column("registration_code_hash", nullable=True),
    timestamp_column("registration_opens_at", nullable=True),
    timestamp_column("registration_closes_at", nullable=True),
    Column("allows_individuals", Boolean, nullable=False, server_default=true()),
    Column("allows_teams", Boolean, nullable=False, server_default=true()),
    integer_column("max_team_members", 3),
    Column("allows_virtual", Boolean, nullable=False, server_default=true()),
    Column("allows_practice", Boolean, nullable=False, server_default=true()),
    # Submissions.
    json_column("allowed_languages", nullable=True),
    integer_column("submissions_per_minute", None, nullable=True),
    integer_column("submissions_per_problem", None, nullable=True),
    Column("verify_required", Boolean, nullable=False, server_default=false()),
    text_column("late_policy", default="refuse"),
    # Staff.
    json_column("clarification_categories", default=text("'[]'")),
    Column("printing_enabled", Boolean, nullable=False, server_default=false()),
    Column("balloons_enabled", Boolean, nullable=False, server_default=false()),
    integer_column("freeze_balloon_minimum", None, nullable=True),
    json_column("awards_cfg", default=text("'{}'")),
    integer_column("bronze_extra"),
    Column("rated", Boolean, nullable=False, server_default=false()),
    integer_column("version", 1),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    foreign_key("created_by", "users", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    UniqueConstraint("slug"),
    check_one_of("state", ContestState),
    check_one_of("format", ContestFormat),
    check_one_of("visibility", ContestVisibility),
    check_one_of("scoreboard_visibility", ScoreboardVisibility),
    check_one_of("feedback", ContestFeedback),
    check_one_of("registration", RegistrationMode),
    check_one_of("late_policy", LATE_POLICIES),
    CheckConstraint("length(slug) BETWEEN 1 AND 36", name="slug_length"),
    CheckConstraint("duration_us > 0", name="duration_positive"),
    CheckConstraint(
        "freeze_ct_us IS NULL OR (freeze_ct_us >= 0 AND freeze_ct_us <= duration_us)", name="freeze_within"
    ),
    CheckConstraint("window_us IS NULL OR (window_us > 0 AND freeze_ct_us IS NULL)", name="window_excludes_freeze"),
    CheckConstraint("starts_at IS NULL OR countdown_pause_us IS NULL", name="paused_without_start"),
    CheckConstraint(
        "state IN ('draft', 'canceled') OR starts_at IS NOT NULL OR countdown_pause_us IS NOT NULL",
        name="published_with_start",
    ),
    CheckConstraint("(finalized_at IS NOT NULL) = (state = 'finalized')", name="finalized_at_exactly_when"),
    CheckConstraint("end_of_updates_at IS NULL OR state = 'finalized'", name="end_of_updates_finalized"),
    CheckConstraint("registration_code_hash IS NULL OR registration = 'code'", name="code_by_mode"),
    CheckConstraint("max_team_members > 0 AND bronze_extra >= 0", name="counts"),
    CheckConstraint("submissions_per_minute > 0", name="submissions_per_minute_positive"),
    CheckConstraint("submissions_per_problem > 0", name="submissions_per_problem_positive"),
    Index(None, "starts_at"),
    partial_index("contests_open", "id", where=MAY_HIDE_RESULTS),
    partial_index("contests_contest_only_key", "contest_only", where="contest_only", unique=True),
)

contest_state_log = Table(
    "contest_state_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    *log_foreign_key("contest_id", "contests"),
    text_column("from_state"),
    text_column("to_state"),
    integer_column("version", None),
    text_column("actor", nullable=True),
    text_column("reason", nullable=True),
    timestamp_column("at"),
    Index(None, "contest_id"),
)

contest_log = Table(
    "contest_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("transition"),
    timestamp_column("due_at"),
    timestamp_column("announced_at"),
    Column("xid", BigInteger, nullable=False, server_default=CurrentTransactionId()),
    UniqueConstraint("contest_id", "transition"),
    check_one_of("transition", TRANSITIONS),
)

contest_roles = Table(
    "contest_roles",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    text_column("role"),
    foreign_key("granted_by", "users", nullable=True),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("contest_id", "user_id", "role"),
    check_one_of("role", ContestRole),
    Index(None, "user_id"),
)

contest_problems = Table(
    "contest_problems",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    foreign_key("problem_id", "problems"),
    foreign_key("revision_id", "problem_revisions"),
    text_column("label"),
    integer_column("ordinal", None),
    text_column("rgb", nullable=True),
    text_column("color", nullable=True),
    text_column("alias", nullable=True),
    integer_column("points_micro", 100_000_000),
    integer_column("opens_ct_us", None, nullable=True),
    integer_column("closes_ct_us", None, nullable=True),
    Column("accepts", Boolean, nullable=False, server_default=true()),
    Column("judging_paused", Boolean, nullable=False, server_default=false()),
    json_column("allowed_languages", nullable=True),
    integer_column("version", 1),
    PrimaryKeyConstraint("contest_id", "problem_id"),
    UniqueConstraint("contest_id", "label"),
    UniqueConstraint("contest_id", "ordinal"),
    CheckConstraint("points_micro >= 0", name="points_not_negative"),
    CheckConstraint("length(label) BETWEEN 1 AND 36", name="label_length"),
    CheckConstraint("opens_ct_us IS NULL OR closes_ct_us IS NULL OR opens_ct_us < closes_ct_us", name="opens_first"),
    Index(None, "problem_id"),
)

removed_intervals = Table(
    "removed_intervals",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    timestamp_column("from_at"),
    timestamp_column("to_at", nullable=True),
    timestamp_column("undone_at", nullable=True),
    text_column("reason", nullable=True),
    foreign_key("created_by", "users", nullable=True),
    timestamp_column("created_at"),
    CheckConstraint("to_at IS NULL OR from_at < to_at", name="ends_after_start"),
    Index(None, "contest_id", "from_at"),
    partial_index(
        "removed_intervals_contest_id_key", "contest_id", where="to_at IS NULL AND undone_at IS NULL", unique=True
    ),
)

contest_invitations = Table(
    "contest_invitations",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("code_hash"),
    text_column("kind", default="official"),
    foreign_key("user_id", "users", nullable=True, ondelete="CASCADE"),
    text_column("note", nullable=True),
    integer_column("max_uses", 1),
    integer_column("uses"),
    foreign_key("created_by", "users", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("expires_at", nullable=True),
    timestamp_column("revoked_at", nullable=True),
    UniqueConstraint("code_hash"),
    check_one_of("kind", ParticipantKind),
    CheckConstraint("uses >= 0 AND uses <= max_uses", name="uses_bounded"),
    Index(None, "contest_id"),
)
