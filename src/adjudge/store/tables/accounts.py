"""People and programs: who they are and what they may do."""

from sqlalchemy import Boolean, CheckConstraint, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, false

from adjudge.store.tables.base import METADATA, SERIAL, document, identifier, moment, number, one_of, reference, words

ROLES = ("admin", "setter", "judge", "contestant", "service")

users = Table(
    "users",
    METADATA,
    identifier(),
    words("name"),
    words("email", nullable=True),
    words("password_hash", nullable=True),
    words("role", default="contestant"),
    moment("disabled_at", nullable=True),
    moment("created_at"),
    moment("updated_at"),
    words("display_name", nullable=True),
    Column("must_change_password", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("name"),
    UniqueConstraint("email"),
    one_of("role", ROLES),
)

api_tokens = Table(
    "api_tokens",
    METADATA,
    identifier(),
    reference("user_id", "users", ondelete="CASCADE"),
    words("name"),
    words("token_hash"),
    document("scopes"),
    moment("created_at"),
    moment("expires_at", nullable=True),
    moment("revoked_at", nullable=True),
    moment("last_used_at", nullable=True),
    UniqueConstraint("token_hash"),
    Index(None, "user_id"),
)

sessions = Table(
    "sessions",
    METADATA,
    identifier(),
    reference("user_id", "users", ondelete="CASCADE"),
    words("token_hash"),
    words("address", nullable=True),
    words("user_agent", nullable=True),
    moment("created_at"),
    moment("seen_at"),
    moment("idle_until"),
    moment("expires_at"),
    moment("revoked_at", nullable=True),
    UniqueConstraint("token_hash"),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

invitations = Table(
    "invitations",
    METADATA,
    identifier(),
    words("code_hash"),
    words("role", default="contestant"),
    words("note", nullable=True),
    number("max_uses", 1),
    number("uses"),
    reference("created_by", "users"),
    moment("created_at"),
    moment("expires_at", nullable=True),
    moment("revoked_at", nullable=True),
    UniqueConstraint("code_hash"),
    one_of("role", ROLES),
    CheckConstraint("uses >= 0 AND uses <= max_uses", name="uses_bounded"),
)

identities = Table(
    "identities",
    METADATA,
    words("issuer"),
    words("subject"),
    reference("user_id", "users", ondelete="CASCADE"),
    moment("created_at"),
    PrimaryKeyConstraint("issuer", "subject"),
    Index(None, "user_id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    METADATA,
    reference("user_id", "users", ondelete="CASCADE"),
    words("key"),
    words("request_digest"),
    number("response_status", None),
    document("response"),
    moment("created_at"),
    moment("expires_at"),
    PrimaryKeyConstraint("user_id", "key"),
    Index(None, "expires_at"),
)

audit_log = Table(
    "audit_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    words("actor"),
    words("action"),
    words("object_kind"),
    words("object_id"),
    words("reason", nullable=True),
    document("details", nullable=True),
    moment("at"),
    Index(None, "object_kind", "object_id"),
    Index(None, "actor", "id"),
)
