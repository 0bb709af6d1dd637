"""Problems, their revisions, and the manifest of test data that each revision pins."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    false,
)

from adjudge.store.tables.base import METADATA, document, identifier, moment, number, one_of, reference, words

REVISION_STATES = ("draft", "published", "withdrawn")

problems = Table(
    "problems",
    METADATA,
    identifier(),
    words("slug"),
    words("title"),
    reference("owner_id", "users"),
    words("published_revision_id", nullable=True),
    document("tags"),
    Column("difficulty", Double, nullable=True),
    number("version", 1),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("slug"),
)

problem_revisions = Table(
    "problem_revisions",
    METADATA,
    identifier(),
    reference("problem_id", "problems"),
    number("number", None),
    words("state", default="draft"),
    words("format"),
    words("manifest_digest"),
    document("definition"),
    reference("created_by", "users"),
    moment("created_at"),
    moment("published_at", nullable=True),
    UniqueConstraint("problem_id", "number"),
    one_of("state", REVISION_STATES),
    CheckConstraint("number > 0", name="number_positive"),
)

manifest_files = Table(
    "manifest_files",
    METADATA,
    reference("revision_id", "problem_revisions", ondelete="CASCADE"),
    words("path"),
    words("digest"),
    number("size_bytes", None),
    Column("is_secret", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("revision_id", "path"),
    Index(None, "digest"),
    CheckConstraint("size_bytes >= 0", name="size_bytes_not_negative"),
)
