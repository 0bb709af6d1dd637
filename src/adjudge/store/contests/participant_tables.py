"""Tables of who takes part in contests: organisations, teams, participants, groups, accounts, ratings."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    false,
    true,
)

from adjudge.domain.contest import ParticipantKind
from adjudge.store.engine.columns import (
    METADATA,
    check_one_of,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    text_column,
    timestamp_column,
)

organizations = Table(
    "organizations",
    METADATA,
    id_column(),
    text_column("code"),
    text_column("name"),
    text_column("formal_name", nullable=True),
    text_column("country", nullable=True),
    text_column("icpc_id", nullable=True),
    text_column("logo_digest", nullable=True),
    integer_column("version", 1),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    UniqueConstraint("code"),
    CheckConstraint("length(code) BETWEEN 1 AND 36", name="code_length"),
)

teams = Table(
    "teams",
    METADATA,
    id_column(),
    text_column("code"),
    text_column("name"),
    text_column("icpc_id", nullable=True),
    foreign_key("organization_id", "organizations", nullable=True),
    text_column("photo_digest", nullable=True),
    text_column("join_code_hash", nullable=True),
    integer_column("version", 1),
    foreign_key("created_by", "users", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    UniqueConstraint("code"),
    CheckConstraint("length(code) BETWEEN 1 AND 36", name="code_length"),
    Index(None, "organization_id"),
    Index(None, "created_by"),
)

team_members = Table(
    "team_members",
    METADATA,
    foreign_key("team_id", "teams", ondelete="CASCADE"),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    Column("is_captain", Boolean, nullable=False, server_default=false()),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("team_id", "user_id"),
    Index(None, "user_id"),
)

participants = Table(
    "participants",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("code"),
    text_column("name"),
    text_column("kind", default="official"),
    foreign_key("team_id", "teams", nullable=True),
    foreign_key("user_id", "users", nullable=True),
    integer_column("run_no"),
    foreign_key("organization_id", "organizations", nullable=True),
    text_column("label", nullable=True),
    text_column("location", nullable=True),
    Column("hidden", Boolean, nullable=False, server_default=false()),
    timestamp_column("disqualified_at", nullable=True),
    timestamp_column("started_at", nullable=True),
    integer_column("delay_us"),
    integer_column("extra_us"),
    integer_column("penalty_adjust_sec"),
    integer_column("version", 1),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    UniqueConstraint("contest_id", "code"),
    UniqueConstraint("contest_id", "team_id", "run_no"),
    UniqueConstraint("contest_id", "user_id", "run_no"),
    check_one_of("kind", ParticipantKind),
    CheckConstraint("(team_id IS NULL) <> (user_id IS NULL)", name="team_or_user"),
    CheckConstraint("length(code) BETWEEN 1 AND 36", name="code_length"),
    CheckConstraint("delay_us >= 0 AND extra_us >= 0 AND run_no >= 0", name="times_not_negative"),
    Index(None, "contest_id", "id"),
    Index(None, "team_id"),
    Index(None, "user_id"),
)

participant_members = Table(
    "participant_members",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    integer_column("run_no"),
    foreign_key("participant_id", "participants", ondelete="CASCADE"),
    PrimaryKeyConstraint("contest_id", "user_id", "run_no"),
    Index(None, "participant_id"),
    Index(None, "user_id"),
)

contest_groups = Table(
    "contest_groups",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("code"),
    text_column("name"),
    text_column("icpc_id", nullable=True),
    Column("ranked", Boolean, nullable=False, server_default=true()),
    Column("hidden", Boolean, nullable=False, server_default=false()),
    integer_column("ordinal"),
    UniqueConstraint("contest_id", "code"),
    CheckConstraint("length(code) BETWEEN 1 AND 36", name="code_length"),
)

contest_group_members = Table(
    "contest_group_members",
    METADATA,
    foreign_key("group_id", "contest_groups", ondelete="CASCADE"),
    foreign_key("participant_id", "participants", ondelete="CASCADE"),
    PrimaryKeyConstraint("group_id", "participant_id"),
    Index(None, "participant_id"),
)

contest_accounts = Table(
    "contest_accounts",
    METADATA,
    foreign_key("user_id", "users", ondelete="CASCADE"),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    json_column("address_ranges", nullable=True),
    Column("temporary", Boolean, nullable=False, server_default=true()),
    timestamp_column("expires_at", nullable=True),
    timestamp_column("disabled_at", nullable=True),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("user_id", "contest_id"),
    Index(None, "contest_id"),
)

ratings = Table(
    "ratings",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    integer_column("rank", None),
    integer_column("performance_milli", None),
    integer_column("before_rating_milli", None),
    integer_column("before_deviation_milli", None),
    integer_column("rating_milli", None),
    integer_column("deviation_milli", None),
    timestamp_column("rated_at"),
    PrimaryKeyConstraint("contest_id", "user_id"),
    Index(None, "user_id", "rated_at"),
)
