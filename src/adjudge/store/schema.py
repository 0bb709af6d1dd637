"""The schema of both databases in this version; migrations must produce the same.

Conventions: every ``*_at`` and ``*_until`` is microseconds since the Unix epoch, UTC; ids are UUID version 7 as text;
JSON columns are text on SQLite and ``jsonb`` on PostgreSQL. Constraint names are stable: errors are mapped by name.
Database triggers are defined in ``adjudge.store.engine.db_triggers``.
"""

from __future__ import annotations

from sqlalchemy import Connection

from adjudge.store.accounts import tables as account_tables
from adjudge.store.chains import tables as chain_tables
from adjudge.store.contests import activity_tables as contest_activity_tables
from adjudge.store.contests import feed_tables, participant_tables, scoreboard_tables
from adjudge.store.contests import tables as contest_tables
from adjudge.store.engine.columns import METADATA
from adjudge.store.engine.db_triggers import trigger_ddl
from adjudge.store.engine.statement import Dialect
from adjudge.store.jobs import tables as job_tables
from adjudge.store.judging import tables as submission_tables
from adjudge.store.ops import tables as ops_tables
from adjudge.store.problems import tables as problem_tables
from adjudge.store.webhooks import tables as webhook_tables

__all__ = [
    "METADATA",
    "account_tables",
    "chain_tables",
    "contest_activity_tables",
    "contest_tables",
    "create",
    "feed_tables",
    "job_tables",
    "ops_tables",
    "participant_tables",
    "problem_tables",
    "scoreboard_tables",
    "submission_tables",
    "webhook_tables",
]


def create(connection: Connection) -> None:
    """Create all tables, indexes and triggers in an empty database."""
    METADATA.create_all(connection)
    for ddl in trigger_ddl(Dialect(connection.dialect.name)):
        connection.exec_driver_sql(ddl)
