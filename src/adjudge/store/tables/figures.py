"""Figures over time, for the pages of operators."""

from sqlalchemy import Index, PrimaryKeyConstraint, Table

from adjudge.store.tables.base import METADATA, document, moment, words

figures = Table(
    "figures",
    METADATA,
    words("source"),
    moment("at"),
    document("sample"),
    PrimaryKeyConstraint("source", "at"),
    Index(None, "at"),
)
