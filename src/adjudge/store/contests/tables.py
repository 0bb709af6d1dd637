"""Tables of contests and their problems."""

from sqlalchemy import CheckConstraint, PrimaryKeyConstraint, Table, UniqueConstraint, text

from adjudge.store.engine.columns import (
    METADATA,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    text_column,
    timestamp_column,
)

contests = Table(
    "contests",
    METADATA,
    id_column(),
    text_column("slug"),
    text_column("title"),
    timestamp_column("starts_at"),
    timestamp_column("freezes_at", nullable=True),
    timestamp_column("ends_at"),
    json_column("rules", default=text("'{}'")),
    integer_column("version", 1),
    timestamp_column("created_at"),
    timestamp_column("updated_at"),
    UniqueConstraint("slug"),
    CheckConstraint("starts_at < ends_at", name="ends_after_start"),
    CheckConstraint("freezes_at IS NULL OR (freezes_at >= starts_at AND freezes_at <= ends_at)", name="freezes_within"),
)

contest_problems = Table(
    "contest_problems",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    foreign_key("problem_id", "problems"),
    text_column("label"),
    integer_column("ordinal", None),
    PrimaryKeyConstraint("contest_id", "problem_id"),
    UniqueConstraint("contest_id", "label"),
)
