"""Problems, their revisions with the test data that each pins, imports, and what the catalogue is searched by."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from adjudge.store.tables.base import METADATA, document, identifier, moment, number, one_of, reference, words

REVISION_STATES = ("draft", "published", "withdrawn")
IMPORT_STATES = ("pending", "running", "succeeded", "failed", "canceled")
IMPORT_PURPOSES = ("import", "verify")
BYTEWISE = Text().with_variant(Text(collation="C"), "postgresql")
"""Compared byte by byte on both databases, so that an index finds words by their beginning."""

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
    Index(None, "owner_id", "id"),
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

problem_words = Table(
    "problem_words",
    METADATA,
    reference("problem_id", "problems", ondelete="CASCADE"),
    Column("word", BYTEWISE, nullable=False),
    PrimaryKeyConstraint("problem_id", "word"),
    Index(None, "word", "problem_id"),
)

problem_tags = Table(
    "problem_tags",
    METADATA,
    reference("problem_id", "problems", ondelete="CASCADE"),
    Column("tag", BYTEWISE, nullable=False),
    PrimaryKeyConstraint("problem_id", "tag"),
    Index(None, "tag", "problem_id"),
)

problem_imports = Table(
    "problem_imports",
    METADATA,
    identifier(),
    words("purpose", default="import"),
    reference("created_by", "users"),
    words("job_id"),
    words("archive_digest", nullable=True),
    words("file_name"),
    document("wanted"),
    words("state", default="pending"),
    reference("problem_id", "problems", nullable=True),
    reference("revision_id", "problem_revisions", nullable=True),
    document("findings", nullable=True),
    document("jury", nullable=True),
    words("error", nullable=True),
    moment("created_at"),
    moment("updated_at"),
    moment("finished_at", nullable=True),
    one_of("purpose", IMPORT_PURPOSES),
    one_of("state", IMPORT_STATES),
    CheckConstraint("(finished_at IS NULL) = (state IN ('pending', 'running'))", name="finished_at_exactly_when"),
    Index(None, "created_by", "id"),
    Index(None, "revision_id", "id"),
)

cache_revisions = Table(
    "cache_revisions",
    METADATA,
    Column("name", Text, primary_key=True),
    number("revision", None),
    Index(None, "revision"),
)
