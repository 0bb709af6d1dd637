"""One schema for both databases.

Conventions: every ``*_at`` and ``*_until`` is microseconds since the Unix epoch, UTC; ids are UUID version 7 as text;
JSON columns hold JSON text on SQLite and ``jsonb`` on PostgreSQL. Names of constraints are stable: errors are found by
them. Triggers stand in ``adjudge.store.triggers``.
"""

from adjudge.store.tables import (
    accounts,
    chain_triggers,
    chains,
    contests,
    drive,
    figures,
    installation,
    judging,
    problems,
    watching,
)
from adjudge.store.tables.base import METADATA

__all__ = [
    "METADATA",
    "accounts",
    "chain_triggers",
    "chains",
    "contests",
    "drive",
    "figures",
    "installation",
    "judging",
    "problems",
    "watching",
]
