"""Generates the reference pages from the code: ``make docs`` writes them, ``--check`` lists those out of date.

Pages under ``docs/reference`` that start with ``MARK`` are generated completely; in other pages only the text between
``<!-- generated: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import asyncpg
import click
import httpx
import obstore.exceptions
import redis.exceptions
from sqlalchemy import URL, CheckConstraint, Index, Table, UniqueConstraint

import adjudge
from adjudge import cli, settings, store
from adjudge.api import errors
from adjudge.blobs import s3_failures
from adjudge.chains import executor_registry, map_node, triggers
from adjudge.domain.errors import RefusalReason
from adjudge.domain.reactions import Reaction, reaction_to
from adjudge.domain.states import STATE_MACHINES
from adjudge.observe import metrics
from adjudge.registry import http_failures
from adjudge.store.engine import postgres_errors, sqlite_errors
from adjudge.store.engine.db_triggers import LOG_CLEANUPS, TABLE_TRIGGERS, LogCleanupTrigger
from adjudge.store.engine.script import Script
from adjudge.store.engine.statement import Statement
from adjudge.store.ops.retention_policy import POLICY, DeletedWith, Kept, Swept
from adjudge.store.schema import METADATA
from adjudge.stream import failures as redis_failures

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
MARK: Final = "<!-- Generated from the code by `make docs`. Do not edit. -->"

_REASONS: Final = {
    RefusalReason.NOT_FOUND: "The row does not exist.",
    RefusalReason.NOT_DUE: "The job is not due yet.",
    RefusalReason.STALE_ATTEMPT: "A newer attempt has claimed the job.",
    RefusalReason.ALREADY_FINISHED: "The row is terminal and does not change any more.",
    RefusalReason.NOT_IN_EXPECTED_STATE: "The status of the row does not allow this write.",
    RefusalReason.LEASE_LOST_OR_OWNER_MISMATCH: "The lease has expired, or another worker is the lease owner.",
    RefusalReason.LEASE_STILL_VALID: "The lease has not expired; its worker may still be running the job.",
    RefusalReason.ATTEMPTS_EXHAUSTED: "The job has used all its attempts.",
    RefusalReason.VERSION_CONFLICT: "The row was changed after it was read.",
}


def import_everything() -> None:
    """Import every module, so that the table contains all error classes."""
    for module in pkgutil.walk_packages(adjudge.__path__, "adjudge."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)


def settings_page() -> str:
    """All settings."""
    rows = []
    for name, default, setting in settings.all_settings():
        variables = " or ".join(f"`{variable}`" for variable in settings.environment_names(setting))
        shown = "`sqlite:///` in the data directory" if name == "database.url" else f"`{default}`"
        rows.append((f"`{name}`", variables, shown, setting.help))
    intro = (
        "A value is taken from the command line, else from the environment, else from `adjudge.toml` in the working\n"
        f"directory (or the file named by `{settings.CONFIG_VARIABLE}`), else it is the default. `adjudge config`\n"
        "prints all effective values with their sources; secrets are hidden. In `adjudge.toml` the part before the\n"
        "dot is the table:\n\n"
        "```toml\n[jobs]\nlease_sec = 30\n```\n"
    )
    return _page("Settings", intro, _table(("Setting", "Environment", "Default", "Purpose"), rows))


def metrics_page() -> str:
    """All metrics."""

    def table(*, is_of_system: bool) -> str:
        rows = [
            (f"`{item.name}`", item.kind, ", ".join(f"`{label}`" for label in item.labels) or "none", item.purpose)
            for item in metrics.ALL_METRICS
            if item.is_of_system is is_of_system
        ]
        return _table(("Metric", "Kind", "Labels", "Meaning"), rows)

    intro = (
        "Served at `/metrics` by every role; [Operate an installation](../how-to/operate.md#metrics-and-health) says\n"
        "at which address and to whom. No label is an id of a job, a submission or a user (INV-6).\n\n"
        "## Metrics of the system\n\n"
        "Every process serves the same values: they are counted in the database, the stream and the registry,\n"
        "at most a few seconds ago. Use `max`, not `sum`, over instances. What cannot be read is left out.\n\n"
    )
    own = (
        "\n## Metrics of a process\n\n"
        "Each process serves what it has counted itself since it started; use `sum` over instances.\n\n"
    )
    return _page("Metrics", intro, table(is_of_system=True) + own + table(is_of_system=False))


def errors_page() -> str:
    """All error codes, and all reasons for a rejected write."""
    rows = [
        (f"`{row.code}`", str(row.status), "yes" if row.retryable else "no", row.meaning)
        for row in errors.error_code_table()
    ]
    reasons = [(f"`{reason}`", _REASONS[reason]) for reason in RefusalReason]
    intro = (
        "Errors are `application/problem+json` with a stable `code`. The command line prints the same code and exits\n"
        "with 3 if the caller can fix the error, and with 2 if Adjudge failed.\n"
    )
    tables = _table(("Code", "Status", "Retryable", "Meaning"), rows)
    tables += "\n## Reasons for a rejected write\n\n" + _table(("Reason", "Meaning"), reasons)
    return _page("Errors", intro, tables)


def outages_page() -> str:
    """The reaction to every error class of every driver."""
    tables = {
        "Redis (redis-py)": (redis_failures.REACTIONS, _classes(redis.exceptions)),
        "PostgreSQL (asyncpg)": (postgres_errors.REACTIONS, _classes(asyncpg.exceptions)),
        "SQLite (sqlite3): errors without a result code": (sqlite_errors.REACTIONS, _classes(sqlite3)),
        "S3 (obstore)": (s3_failures.REACTIONS, _classes(obstore.exceptions)),
        "etcd (httpx)": (http_failures.REACTIONS, _classes(httpx)),
    }
    codes = {
        "Redis: error codes without a class": redis_failures.CODES,
        "SQLite: result codes": sqlite_errors.RESULT_CODES,
    }
    body = ""
    for title, (table, found) in tables.items():
        body += _reactions(title, {f"`{_class_name(kind)}`": reaction_to(kind, table) for kind in found})
    for title, known in codes.items():
        body += _reactions(title, {f"`{code}`": reaction for code, reaction in known.items()})
    intro = (
        "How Adjudge reacts to each error of a server that it depends on. **wait**: the server is unavailable; an API\n"
        "request gets status 503, and workers, schedulers and listeners retry with exponential backoff (bounded, with\n"
        "jitter in the upper half). The start and the end of an outage are logged once each. **refuse**: the request\n"
        "is invalid, and the caller gets the error. **fatal**: a defect of Adjudge or of the installation.\n"
        "\nDeadlocks and serialization failures of PostgreSQL are first retried immediately, up to five times. A\n"
        "server that refuses to write (PostgreSQL 25006; Redis READONLY, MASTERDOWN, CLUSTERDOWN, MOVED, ASK) has\n"
        "probably become a standby and keeps its connections open: they are closed, because a new one may lead to\n"
        "the primary.\n"
    )
    return _page("Outages", intro, body)


def retention_page() -> str:
    """What happens to the rows of each table in the course of time."""
    swept = [
        (f"`{name}`", policy.after, f"`{policy.setting}`" if policy.setting else "fixed", policy.by)
        for name, policy in POLICY.items()
        if isinstance(policy, Swept)
    ]
    with_others = [
        (f"`{name}`", f"`{policy.table}`") for name, policy in POLICY.items() if isinstance(policy, DeletedWith)
    ]
    kept = [(f"`{name}`", policy.reason) for name, policy in POLICY.items() if isinstance(policy, Kept)]
    intro = (
        "How long the rows of each table are kept. The scheduler deletes rows whose time is over once a minute, in\n"
        "batches, at most a few thousand rows of a table in a pass. `adjudge_retention_deleted_total` counts deleted\n"
        "rows by table, `adjudge_retention_behind` is 1 for tables of which due rows were left for the next pass, and\n"
        "`adjudge_retention_last_run_timestamp_seconds` is the time of the last pass. Settings are in days or in\n"
        "seconds; 0 days means unlimited.\n"
        "\nFiles (sources, packages, artifacts of chains) are deleted by `adjudge gc` when no row refers to them any\n"
        "more; run it daily. Logs are written to standard error; their retention is that of the service manager.\n"
    )
    body = "## Deleted in time\n\n" + _table(("Table", "Deleted", "Setting", "By"), swept)
    body += "\n## Deleted with other rows\n\n" + _table(("Table", "With"), with_others)
    body += "\n## Kept\n\n" + _table(("Table", "Reason"), kept)
    return _page("Retention", intro, body)


def _classes(module: Any) -> list[type[BaseException]]:
    notices = (asyncpg.PostgresLogMessage, asyncpg.InterfaceWarning)
    found = {item for item in vars(module).values() if isinstance(item, type) and issubclass(item, Exception)}
    return sorted((item for item in found if not issubclass(item, notices)), key=lambda item: item.__name__)


def _class_name(kind: type[BaseException]) -> str:
    state = getattr(kind, "sqlstate", None)
    return f"{kind.__name__} {state}" if state else kind.__name__


def _reactions(title: str, known: Mapping[str, Reaction]) -> str:
    """One row per reaction; there are hundreds of classes."""
    rows = [
        (f"**{reaction}**", ", ".join(name for name, chosen in known.items() if chosen is reaction) or "none")
        for reaction in Reaction
    ]
    return f"## {title}\n\n" + _table(("Reaction", "Errors"), rows) + "\n"


def cli_page() -> str:
    """All commands with their options."""
    body = "\n".join(_command("adjudge", cli.main, None))
    intro = "Exit codes: 0 success, 3 an error that the caller can fix, 2 a failure of Adjudge.\n"
    return _page("CLI reference", intro, body)


def _command(path: str, command: click.Command, parent: click.Context | None) -> Iterator[str]:
    with click.Context(command, info_name=path, parent=parent, **command.context_settings) as context:
        yield f"## `{path}`\n"
        yield inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"
        yield f"```\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
        rows = [record for item in command.get_params(context) if (record := item.get_help_record(context))]
        if rows:
            yield _table(("Option", "Meaning"), [(f"`{name}`", text) for name, text in rows])
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None and not child.hidden:
                    itself = child.load() if isinstance(child, cli.LazyCommand) else child
                    yield from _command(f"{path} {name}", itself, context)


def executors_page() -> str:
    """All built-in node types with their cfg, and all kinds of triggers with their spec."""
    ours = [
        item for item in executor_registry.discover_executors().executors.values() if item.distribution == "adjudge"
    ]
    described = {item.type: (item.summary, item.cfg_schema) for item in ours}
    described[map_node.MAP] = (map_node.MAP_SUMMARY, map_node.MAP_SCHEMA)
    body = "".join(_schema_section(name, *described[name]) for name in sorted(described))
    body += "\n# Triggers\n\nTriggers start runs; see [Automate with chains](../how-to/automate-with-chains.md).\n"
    body += "".join(_schema_section(kind, "", schema) for kind, schema in triggers.SPECS.items())
    intro = (
        "The `type` of a node is one of these, or the type of an executor from another Python package\n"
        "([Write a node executor](../how-to/write-an-executor.md)). Its `cfg` is validated when the chain is defined,\n"
        "and again after template expansion, before the node runs.\n"
    )
    return _page("Node executors and triggers", intro, body)


def _schema_section(name: str, summary: str, schema: Mapping[str, Any]) -> str:
    text = f"\n## `{name}`\n\n" + (f"{summary}\n\n" if summary else "")
    needed = set(schema.get("required", ()))
    rows = [
        (f"`{key}`", _json_type(value), "yes" if key in needed else "", value.get("description", ""))
        for key, value in schema.get("properties", {}).items()
    ]
    return text + (_table(("Field", "Type", "Required", "Meaning"), rows) if rows else "No fields.\n")


def _json_type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kinds = schema.get("type", "")
    return (
        " or ".join(kinds) if isinstance(kinds, list) else kinds or ("text or object" if "oneOf" in schema else "any")
    )


def statements() -> list[Statement | Script]:
    """Every named statement and script of the store."""
    found: dict[int, Statement | Script] = {}
    for module in pkgutil.walk_packages(store.__path__, "adjudge.store."):
        if not module.ispkg and ".migrations" not in module.name:
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Statement | Script):
                    found[id(value)] = value
    return sorted(found.values(), key=lambda statement: statement.name)


def statements_page() -> str:
    """All statements with their purposes."""
    rows = [(f"`{statement.name}`", statement.purpose) for statement in statements()]
    intro = "All SQL statements except those of migrations, by name. Logs use these names.\n"
    return _page("SQL statements", intro, _table(("Statement", "Purpose"), rows))


def schema_page() -> str:
    """All tables with columns, constraints and indexes, and all database triggers."""
    body = "\n".join(_table_section(table) for table in sorted(METADATA.tables.values(), key=lambda table: table.name))
    rows = [
        (f"`{item.name}`", f"`{watch.table}`", type(item).__name__.lower(), item.when)
        for watch in TABLE_TRIGGERS
        for item in watch.parts
    ]
    rows += [(f"`{item.name}`", f"`{item.table}`", "sweep", _cleanup_section(item)) for item in LOG_CLEANUPS]
    body += (
        "\n## Triggers\n\n"
        "A *guard* rejects an UPDATE if its condition holds; a *log* appends a row to a status log. On SQLite each is\n"
        "a trigger. On PostgreSQL all of a table are one trigger, `<table>_watch`; an error names the guard.\n"
        "A *sweep* deletes the log rows of deleted rows on PostgreSQL; on SQLite a foreign key does.\n\n"
    )
    body += _table(("Trigger", "Table", "Kind", "Condition"), rows)
    intro = (
        "One schema for both databases. Ids are UUIDv7 as text. Every `*_at` and `*_until` is a timestamp in\n"
        "microseconds since the Unix epoch (UTC). Documents are `jsonb` on PostgreSQL and JSON text on SQLite.\n"
    )
    return _page("Database schema", intro, body)


def _cleanup_section(sweep: LogCleanupTrigger) -> str:
    return "rows are deleted; deletes their rows in " + ", ".join(f"`{log}.{key}`" for log, key in sweep.logs)


def _table_section(table: Table) -> str:
    dialect = URL.create("postgresql").get_dialect()()
    swept = {log for sweep in LOG_CLEANUPS for log in sweep.logs}
    rows = []
    for column in table.columns:
        default = "" if column.server_default is None else f"`{getattr(column.server_default, 'arg', '')}`"
        targets = ", ".join(f"→ `{key.target_fullname}`" for key in column.foreign_keys)
        targets += ", swept" if (table.name, column.name) in swept else ""
        null = "yes" if column.nullable else "no"
        rows.append((f"`{column.name}`", column.type.compile(dialect).lower(), null, default, targets))
    rules = [
        (f"`{item.name}`", f"CHECK {item.sqltext}")
        for item in table.constraints
        if isinstance(item, CheckConstraint) and item.name
    ]
    rules += [
        (f"`{item.name}`", f"UNIQUE ({', '.join(item.columns.keys())})")
        for item in table.constraints
        if isinstance(item, UniqueConstraint)
    ]
    rules += [(f"`{index.name}`", _index(index)) for index in table.indexes]
    section = f"## `{table.name}`\n\n" + _table(("Column", "Type", "Null", "Default", "Refers to"), rows)
    return section + ("\n" + _table(("Constraint or index", "Definition"), sorted(rules)) if rules else "")


def _index(index: Index) -> str:
    where = index.dialect_options["postgresql"]["where"]
    columns = ", ".join(str(column.name) for column in index.columns)
    return f"{'unique ' if index.unique else ''}index ({columns})" + ("" if where is None else f" where {where}")


def state_diagrams() -> str:
    """One diagram per state machine."""
    parts = [f"### {item.name.capitalize()}\n\n```mermaid\n{item.mermaid()}\n```\n" for item in STATE_MACHINES]
    return "\n".join(parts)


PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics_page,
    "reference/errors.md": errors_page,
    "reference/cli.md": cli_page,
    "reference/outages.md": outages_page,
    "reference/retention.md": retention_page,
    "reference/sql-statements.md": statements_page,
    "reference/database-schema.md": schema_page,
    "reference/executors-and-triggers.md": executors_page,
}
BLOCKS: Final[dict[tuple[str, str], Callable[[], str]]] = {
    ("explanation/architecture.md", "states"): state_diagrams,
}


def generated_files() -> Iterator[tuple[Path, str]]:
    """Each file with generated text, and its expected contents."""
    import_everything()
    for name, write in PAGES.items():
        yield DOCS / name, write()
    for (name, block), write in BLOCKS.items():
        path = DOCS / name
        pattern = re.compile(rf"(<!-- generated: {block} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = path.read_text("utf-8")
        found = pattern.search(text)
        if found is None:
            sys.exit(f"{path.relative_to(ROOT)}: there is no block {block!r}")
        yield path, text[: found.end(1)] + write() + text[found.start(2) :]


def _page(title: str, intro: str, body: str) -> str:
    return f"{MARK}\n# {title}\n\n{intro}\n{body.rstrip()}\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the pages; with ``--check``, only list those that differ."""
    stale = [(path, text) for path, text in generated_files() if not path.exists() or path.read_text("utf-8") != text]
    names = ", ".join(str(path.relative_to(ROOT)) for path, _ in stale)
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {names}; run `make docs`" if stale else 0)
    for path, text in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    print(f"• written: {names}" if stale else "up to date")


if __name__ == "__main__":
    main()
