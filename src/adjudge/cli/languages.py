"""``adjudge languages``: lists languages, versions, commands and missing packages."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import json_option
from adjudge.cli.outdated_languages import list_outdated, print_outdated
from adjudge.cli.output import make_console
from adjudge.cli.wiring.judge import load_languages, make_sandbox
from adjudge.judge.language_overlay import LanguageOrigin
from adjudge.judge.languages import Language, Languages, version_number


@click.command(name="languages")
@click.option("--commands", "show_commands", is_flag=True, help="Also show the compile and run commands.")
@click.option(
    "--pin", "print_pins", is_flag=True, help="Print the installed versions as pins for judge.languages_file (TOML)."
)
@click.option(
    "--outdated",
    "only_outdated",
    is_flag=True,
    help="List versions that differ: pinned and installed here, between workers, and those of judged submissions.",
)
@json_option
def command(*, show_commands: bool, print_pins: bool, only_outdated: bool, as_json: bool) -> None:
    """List languages, their installed versions and missing packages.

    Versions are queried inside the sandbox: a listed version is usable for judging. The source of an entry is built-in,
    or changed or added by the file of judge.languages_file.
    """
    languages = load_languages()
    rows = asyncio.run(_rows(languages))
    if only_outdated:
        found = asyncio.run(
            list_outdated(settings_source.load(), languages, {row["id"]: row["version"] for row in rows})
        )
        click.echo(json.dumps(found.as_dict(), indent=2)) if as_json else print_outdated(found)
    elif print_pins:
        click.echo(_pins(rows), nl=False)
    elif as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print(rows, show_commands=show_commands)


def _print(rows: list[dict[str, Any]], *, show_commands: bool) -> None:
    console = make_console()
    table = Table("id", "language", "files", "version", "time factor", "source", "remarks", box=None, pad_edge=False)
    for row in rows:
        names = " ".join(f".{extension}" for extension in row["extensions"])
        cells = [row["id"], row["name"], names, row["version"], f"{row['time_factor']:g}", row["source"], _remarks(row)]
        style = "" if row["installed"] and not row["disabled"] else "dim"
        table.add_row(*map(escape, cells), style=style)
    console.print(table)
    if not show_commands:
        return
    for row in rows:
        for name in ("compile", "run"):
            if row[name]:
                console.print(f"{row['id']} {name}: {escape(shlex.join(row[name]))}", soft_wrap=True)


def _remarks(row: dict[str, Any]) -> str:
    remarks = ["disabled"] if row["disabled"] else []
    remarks += [f"pinned to {row['pin']}"] if row["pin"] else []
    remarks += [row["missing"]] if row["missing"] else []
    remarks += [f"changed: {', '.join(row['changed_keys'])}"] if row["source"] == LanguageOrigin.CHANGED else []
    return "; ".join(remarks)


def _pins(rows: list[dict[str, Any]]) -> str:
    tables = (
        f"[{row['id']}]\npin = {json.dumps(version_number(row['version']))}\n"
        for row in rows
        if row["version"] and row["version"] != "unknown"
    )
    return "\n".join(tables)


async def _rows(languages: Languages) -> list[dict[str, Any]]:
    async with make_sandbox(settings_source.load(), 1, trusted=True) as box:
        versions = {language.id: await languages.version(language, box) for language in languages}
    return [_row(languages, language, versions[language.id]) for language in languages]


def _row(languages: Languages, language: Language, version: str) -> dict[str, Any]:
    toolchain, source = languages.toolchain(language), languages.source(language)
    return {
        "id": language.id,
        "name": language.name,
        "code": language.code,
        "aliases": list(language.aliases),
        "extensions": list(language.extensions),
        "installed": toolchain.usable,
        "version": version,
        "pin": language.pin,
        "disabled": language.disabled,
        "time_factor": language.time_factor,
        "compile": list(language.compile),
        "run": list(language.run),
        "source": source.origin.value,
        "changed_keys": list(source.keys),
        "package": language.package,
        "missing": toolchain.missing,
    }
