"""What tells one installation from another."""

from sqlalchemy import CheckConstraint, PrimaryKeyConstraint, Table

from adjudge.store.tables.base import METADATA, number, words

installation = Table(
    "installation",
    METADATA,
    number("only_row", None),
    words("id"),
    PrimaryKeyConstraint("only_row"),
    CheckConstraint("only_row = 1", name="one_row"),
)
