"""Database triggers that refuse writes to a contest after its end of updates.

``contests.end_of_updates_at`` is set once, when the contest is finalized and thawed. From then on its results are a
fixed document: problems, participants, submissions and awards can no longer change, not even by manual SQL. Virtual and
practice participants are exempt: they come later and are not part of the results. The scoreboard is derived from these
tables; ``contests/scoreboard.py`` refuses to change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adjudge.store.engine.statement import Dialect

GUARD: Final = "contests_end_of_updates"
"""The name of the constraint that an error names."""

CLOSED_TABLES: Final = ("awards", "contest_problems", "removed_intervals")
"""Tables with a ``contest_id`` that are closed completely."""
_LATER_KINDS = "('practice', 'virtual')"
_IS_CLOSED = "EXISTS (SELECT 1 FROM contests WHERE id = {row}.contest_id AND end_of_updates_at IS NOT NULL)"
_CONDITIONS: Final = {
    **dict.fromkeys(CLOSED_TABLES, _IS_CLOSED),
    "participants": f"{{row}}.kind NOT IN {_LATER_KINDS} AND {_IS_CLOSED}",
    "contest_submissions": f"{_IS_CLOSED} AND NOT EXISTS (SELECT 1 FROM participants "
    f"WHERE id = {{row}}.participant_id AND kind IN {_LATER_KINDS})",
}
"""By table, the condition under which a write is refused; ``{row}`` is NEW or OLD."""
_ROWS: Final = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


def contest_closed_triggers(dialect: Dialect) -> list[str]:
    """The DDL of the triggers."""
    return _sqlite(_CONDITIONS) if dialect is Dialect.SQLITE else _postgres(_CONDITIONS)


def _sqlite(tables: Mapping[str, str]) -> list[str]:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{GUARD}'); END"
    own = f"CREATE TRIGGER {GUARD} BEFORE UPDATE ON contests WHEN OLD.end_of_updates_at IS NOT NULL {refuse}"
    return [
        own,
        *(
            f"CREATE TRIGGER {table}_closed_{event.lower()} BEFORE {event} ON {table} "
            f"WHEN {condition.replace('{row}', row)} {refuse}"
            for table, condition in tables.items()
            for event, row in _ROWS.items()
        ),
    ]


def _postgres(tables: Mapping[str, str]) -> list[str]:
    refuse = f"PERFORM adjudge_refuse('{GUARD}', '', '')"
    found = [
        f"CREATE FUNCTION {GUARD}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {refuse}; RETURN NULL; END $$",
        (
            f"CREATE TRIGGER {GUARD} AFTER UPDATE ON contests FOR EACH ROW "
            f"WHEN (OLD.end_of_updates_at IS NOT NULL) EXECUTE FUNCTION {GUARD}()"
        ),
    ]
    for table, condition in tables.items():
        name = f"{table}_closed"
        after, before = condition.replace("{row}", "NEW"), condition.replace("{row}", "OLD")
        body = (
            f"IF TG_OP <> 'DELETE' AND {after} THEN {refuse}; END IF; "
            f"IF TG_OP = 'DELETE' AND {before} THEN {refuse}; END IF; RETURN NULL;"
        )
        found += [
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
            f"CREATE TRIGGER {name} AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
        ]
    return found
