"""Figures over time, for the pages of operators."""

from sqlalchemy import Index, PrimaryKeyConstraint, Table

from adjudge.store.engine.columns import METADATA, json_column, text_column, timestamp_column

metric_samples = Table(
    "figures",
    METADATA,
    text_column("source"),
    timestamp_column("at"),
    json_column("sample"),
    PrimaryKeyConstraint("source", "at"),
    Index(None, "at"),
)
