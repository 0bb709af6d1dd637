"""Tables of users, sessions, API tokens, invitations and identities."""

from sqlalchemy import Boolean, CheckConstraint, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, false

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

ROLES = ("admin", "setter", "judge", "contestant", "service")

users = Table(
    "users",
    METADATA,
    id_column(),
    text_column("name"),
    text_column("email", nullable=True),
    text_column("password_hash", nullable=True),
    text_column("role", default="contestant"),
    timestamp_column("disabled_at", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    text_column("display_name", nullable=True),
    Column("must_change_password", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("name"),
    UniqueConstraint("email"),
    check_one_of("role", ROLES),
)

api_tokens = Table(
    "api_tokens",
    METADATA,
    id_column(),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    text_column("name"),
    text_column("token_hash"),
    json_column("scopes"),
    timestamp_column("created_at"),
    timestamp_column("expires_at", nullable=True),
    timestamp_column("revoked_at", nullable=True),
    timestamp_column("last_used_at", nullable=True),
    UniqueConstraint("token_hash"),
    Index(None, "user_id"),
)

sessions = Table(
    "sessions",
    METADATA,
    id_column(),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    text_column("token_hash"),
    text_column("address", nullable=True),
    text_column("user_agent", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("seen_at"),
    timestamp_column("idle_until"),
    timestamp_column("expires_at"),
    timestamp_column("revoked_at", nullable=True),
    UniqueConstraint("token_hash"),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

password_resets = Table(
    "password_resets",
    METADATA,
    id_column(),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    text_column("token_hash"),
    timestamp_column("created_at"),
    timestamp_column("expires_at"),
    timestamp_column("used_at", nullable=True),
    UniqueConstraint("token_hash"),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

invitations = Table(
    "invitations",
    METADATA,
    id_column(),
    text_column("code_hash"),
    text_column("role", default="contestant"),
    text_column("note", nullable=True),
    integer_column("max_uses", 1),
    integer_column("uses"),
    foreign_key("created_by", "users"),
    timestamp_column("created_at"),
    timestamp_column("expires_at", nullable=True),
    timestamp_column("revoked_at", nullable=True),
    UniqueConstraint("code_hash"),
    check_one_of("role", ROLES),
    CheckConstraint("uses >= 0 AND uses <= max_uses", name="uses_bounded"),
)

identities = Table(
    "identities",
    METADATA,
    text_column("issuer"),
    text_column("subject"),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    timestamp_column("created_at"),
    PrimaryKeyConstraint("issuer", "subject"),
    Index(None, "user_id"),
)
