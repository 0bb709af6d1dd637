"""What tells one installation from another."""

from sqlalchemy import CheckConstraint, PrimaryKeyConstraint, Table

from adjudge.store.engine.columns import METADATA, integer_column, text_column

installation = Table(
    "installation",
    METADATA,
    integer_column("only_row", None),
    text_column("id"),
    PrimaryKeyConstraint("only_row"),
    CheckConstraint("only_row = 1", name="one_row"),
)
