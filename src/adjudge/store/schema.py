"""The schema as this version means it, created at once: what the migrations must arrive at."""

from __future__ import annotations

from sqlalchemy import Connection

from adjudge.store.statement import Dialect
from adjudge.store.tables import METADATA
from adjudge.store.triggers import trigger_ddl


def create(connection: Connection) -> None:
    """Create every table, index and trigger on an empty database."""
    METADATA.create_all(connection)
    for ddl in trigger_ddl(Dialect(connection.dialect.name)):
        connection.exec_driver_sql(ddl)
