"""Contests and the problems in them."""

from sqlalchemy import CheckConstraint, PrimaryKeyConstraint, Table, UniqueConstraint, text

from adjudge.store.tables.base import METADATA, document, identifier, moment, number, reference, words

contests = Table(
    "contests",
    METADATA,
    identifier(),
    words("slug"),
    words("title"),
    moment("starts_at"),
    moment("freezes_at", nullable=True),
    moment("ends_at"),
    document("rules", default=text("'{}'")),
    number("version", 1),
    moment("created_at"),
    moment("updated_at"),
    UniqueConstraint("slug"),
    CheckConstraint("starts_at < ends_at", name="ends_after_start"),
    CheckConstraint("freezes_at IS NULL OR (freezes_at >= starts_at AND freezes_at <= ends_at)", name="freezes_within"),
)

contest_problems = Table(
    "contest_problems",
    METADATA,
    reference("contest_id", "contests", ondelete="CASCADE"),
    reference("problem_id", "problems"),
    words("label"),
    number("ordinal", None),
    PrimaryKeyConstraint("contest_id", "problem_id"),
    UniqueConstraint("contest_id", "label"),
)
