"""``adjudge config``: prints the effective settings and their sources."""

from __future__ import annotations

import json

import click

from adjudge import settings
from adjudge.cli.options import json_option
from adjudge.settings import EffectiveSetting


@click.command("config")
@json_option
def command(*, as_json: bool) -> None:
    """Show all effective settings and their sources. Secrets are redacted."""
    loaded = settings.load()
    entries = list(loaded.entries())
    if as_json:
        click.echo(json.dumps({entry.name: _row(entry) for entry in entries}, indent=2))
        return
    widths = [max(len(cell) for cell in column) for column in zip(*map(_cells, entries), strict=True)]
    for entry in entries:
        cells = zip(_cells(entry), widths, strict=True)
        click.echo("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
    for note in loaded.unknown_variables:
        click.echo(f"note: {note}", err=True)


def _cells(entry: EffectiveSetting) -> tuple[str, str, str]:
    return entry.name, str(entry.value), entry.source


def _row(entry: EffectiveSetting) -> dict[str, object]:
    plain = entry.value if isinstance(entry.value, int | float | bool) else str(entry.value)
    return {"value": plain, "source": entry.source, "variable": settings.environment_names(entry.setting)[0]}
