"""``adjudge languages --outdated``: versions that differ from the pins, between workers, or from judged submissions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import click
from rich.table import Table

from adjudge.cli.output import make_console
from adjudge.cli.wiring.drivers import existing_url, open_existing_database, open_registry
from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Languages, version_number
from adjudge.registry import LiveProcess
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.judging.language_versions import JudgedWith, iter_judged_with

_SHOWN_PROBLEMS = 5
_REJUDGE = "adjudge rejudge create --language LANGUAGE --until TIME --problem SLUG --revision pinned"


@dataclass(frozen=True, slots=True)
class PinMismatch:
    """A language whose installed version on this machine is not the pinned one."""

    language: str
    pin: str
    installed: str


@dataclass(frozen=True, slots=True)
class OldVerdicts:
    """Submissions that were judged with a version that no online worker has."""

    language: str
    judged_with: str
    """Empty: not recorded."""
    current: tuple[str, ...]
    submissions: int
    problems: tuple[str, ...]
    last_submitted_at: str


@dataclass(frozen=True, slots=True)
class OutdatedLanguages:
    """Everything that ``--outdated`` lists."""

    pins: tuple[PinMismatch, ...] = ()
    workers: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """Language → version → workers, where online workers differ."""
    submissions: tuple[OldVerdicts, ...] = ()
    has_database: bool = True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def list_outdated(settings: Settings, languages: Languages, installed: Mapping[str, str]) -> OutdatedLanguages:
    """Compare pins, workers and judged submissions; without a database, only the pins of this machine."""
    pins = _wrong_pins(languages, installed)
    try:
        existing_url(settings)
    except InvalidInput:
        return OutdatedLanguages(pins, has_database=False)
    async with open_existing_database(settings) as database, open_registry(settings, database) as registry:
        return replace(await compare_versions(database, await registry.list(), installed), pins=pins)


def _wrong_pins(languages: Languages, installed: Mapping[str, str]) -> tuple[PinMismatch, ...]:
    pinned = ((language, installed[language.id]) for language in languages if language.pin and installed[language.id])
    return tuple(
        PinMismatch(language.id, language.pin, version_number(version))
        for language, version in pinned
        if not language.accepts(version)
    )


async def compare_versions(
    database: Database, online: Sequence[LiveProcess], installed: Mapping[str, str]
) -> OutdatedLanguages:
    """Compare the online workers with each other and with judged submissions; without workers, this machine."""
    workers = _versions_of_workers(online)
    current = {name: set(found) for name, found in workers.items()} or {
        name: {version} for name, version in installed.items() if version
    }
    old = _old_verdicts([row async for row in iter_judged_with(database)], current)
    different = {name: dict(found) for name, found in workers.items() if len(found) > 1}
    return OutdatedLanguages(workers=different, submissions=old)


def _versions_of_workers(workers: Sequence[LiveProcess]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for worker in workers:
        for language, version in worker.info.languages.items():
            found[language][version].append(worker.info.name)
    return found


def _old_verdicts(rows: Sequence[JudgedWith], current: Mapping[str, set[str]]) -> tuple[OldVerdicts, ...]:
    groups: dict[tuple[str, str], list[JudgedWith]] = defaultdict(list)
    for row in rows:
        if row.language in current and row.version not in current[row.language]:
            groups[row.language, row.version].append(row)
    return tuple(
        OldVerdicts(
            language=language,
            judged_with=version,
            current=tuple(sorted(current[language])),
            submissions=sum(row.submissions for row in group),
            problems=tuple(sorted({row.problem_slug for row in group})),
            last_submitted_at=_timestamp(max(row.last_created_at for row in group)),
        )
        for (language, version), group in sorted(groups.items())
    )


def _timestamp(microseconds: int) -> str:
    """RFC 3339, rounded up to the next second, so that ``--until`` includes the submission."""
    return datetime.fromtimestamp(microseconds // 1_000_000 + 1, UTC).isoformat().replace("+00:00", "Z")


def print_outdated(found: OutdatedLanguages) -> None:
    """Print what differs, and how to rejudge."""
    for item in found.pins:
        click.echo(f"{item.language}: {item.pin} is pinned, {item.installed} is installed; it is not used for judging")
    for language, versions in found.workers.items():
        listed = "; ".join(f"{version_number(version)} on {', '.join(names)}" for version, names in versions.items())
        click.echo(f"{language}: workers have different versions: {listed}")
    if found.submissions:
        table = Table("language", "judged with", "now", "submissions", "problems", "submitted until")
        for row in found.submissions:
            table.add_row(
                row.language,
                version_number(row.judged_with) or "not recorded",
                ", ".join(map(version_number, row.current)),
                str(row.submissions),
                _shorten(row.problems),
                row.last_submitted_at,
            )
        make_console().print(table)
        click.echo(f"To rejudge: `{_REJUDGE}`.")
    if not found.has_database:
        click.echo("No database here: judged submissions and workers were not compared.")
    elif not (found.pins or found.workers or found.submissions):
        click.echo("Nothing is outdated.")


def _shorten(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_PROBLEMS
    return ", ".join(names[:_SHOWN_PROBLEMS]) + (f" and {more} more" if more > 0 else "")
