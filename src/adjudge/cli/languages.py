"""``adjudge languages``: lists languages, versions and missing packages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click
from rich.table import Table

from adjudge import settings as settings_source
from adjudge.cli.options import json_option
from adjudge.cli.output import make_console
from adjudge.cli.wiring.judge import load_languages, make_sandbox
from adjudge.judge.languages import Languages


@click.command(name="languages")
@json_option
def command(as_json: bool) -> None:
    """List languages, their installed versions and missing packages.

    Versions are queried inside the sandbox: a listed version is usable for judging.
    """
    rows = asyncio.run(_rows(load_languages()))
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table("id", "language", "files", "version", "package to install", box=None, pad_edge=False)
    for row in rows:
        names = " ".join(f".{extension}" for extension in row["extensions"])
        if row["installed"]:
            table.add_row(row["id"], row["name"], names, row["version"], "")
        else:
            table.add_row(f"[dim]{row['id']}[/]", f"[dim]{row['name']}[/]", f"[dim]{names}[/]", "", row["package"])
    make_console().print(table)


async def _rows(languages: Languages) -> list[dict[str, Any]]:
    rows = []
    async with make_sandbox(settings_source.load(), 1, trusted=True) as box:
        for language in languages:
            version = await languages.version(language, box)
            toolchain = languages.toolchain(language)
            rows.append(
                {
                    "id": language.id,
                    "name": language.name,
                    "code": language.code,
                    "aliases": list(language.aliases),
                    "extensions": list(language.extensions),
                    "installed": toolchain.usable,
                    "version": version,
                    "package": language.package,
                    "missing": toolchain.missing,
                }
            )
    return rows
