"""Tables of problems, revisions, files, search words, tags and imports."""

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

REVISION_STATES = ("draft", "published", "withdrawn")
IMPORT_STATES = ("pending", "running", "succeeded", "failed", "canceled")
IMPORT_PURPOSES = ("import", "verify")
BYTEWISE = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that both databases compare bytewise, so that an index finds words by prefix."""

problems = Table(
    "problems",
    METADATA,
    id_column(),
    text_column("slug"),
    text_column("title"),
    foreign_key("owner_id", "users"),
    text_column("published_revision_id", nullable=True),
    json_column("tags"),
    Column("difficulty", Double, nullable=True),
    integer_column("version", 1),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    UniqueConstraint("slug"),
    Index(None, "owner_id", "id"),
)

problem_revisions = Table(
    "problem_revisions",
    METADATA,
    id_column(),
    foreign_key("problem_id", "problems"),
    integer_column("number", None),
    text_column("state", default="draft"),
    text_column("format"),
    text_column("manifest_digest"),
    json_column("definition"),
    foreign_key("created_by", "users"),
    timestamp_column("created_at"),
    timestamp_column("published_at", nullable=True),
    UniqueConstraint("problem_id", "number"),
    check_one_of("state", REVISION_STATES),
    CheckConstraint("number > 0", name="number_positive"),
)

manifest_files = Table(
    "manifest_files",
    METADATA,
    foreign_key("revision_id", "problem_revisions", ondelete="CASCADE"),
    text_column("path"),
    text_column("digest"),
    integer_column("size_bytes", None),
    Column("is_secret", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("revision_id", "path"),
    Index(None, "digest"),
    CheckConstraint("size_bytes >= 0", name="size_bytes_not_negative"),
)

problem_words = Table(
    "problem_words",
    METADATA,
    foreign_key("problem_id", "problems", ondelete="CASCADE"),
    Column("word", BYTEWISE, nullable=False),
    PrimaryKeyConstraint("problem_id", "word"),
    Index(None, "word", "problem_id"),
)

problem_tags = Table(
    "problem_tags",
    METADATA,
    foreign_key("problem_id", "problems", ondelete="CASCADE"),
    Column("tag", BYTEWISE, nullable=False),
    PrimaryKeyConstraint("problem_id", "tag"),
    Index(None, "tag", "problem_id"),
)

problem_imports = Table(
    "problem_imports",
    METADATA,
    id_column(),
    text_column("purpose", default="import"),
    foreign_key("created_by", "users"),
    text_column("job_id"),
    text_column("archive_digest", nullable=True),
    text_column("file_name"),
    json_column("requested"),
    text_column("state", default="pending"),
    foreign_key("problem_id", "problems", nullable=True),
    foreign_key("revision_id", "problem_revisions", nullable=True),
    json_column("findings", nullable=True),
    json_column("jury", nullable=True),
    text_column("error", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    timestamp_column("finished_at", nullable=True),
    check_one_of("purpose", IMPORT_PURPOSES),
    check_one_of("state", IMPORT_STATES),
    CheckConstraint("(finished_at IS NULL) = (state IN ('pending', 'running'))", name="finished_at_exactly_when"),
    Index(None, "created_by", "id"),
    Index(None, "revision_id", "id"),
)
