"""``adjudge contest import``, and the package of ``adjudge contest export``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import follow_links_option, json_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.problem_remote import zip_package
from adjudge.packages.archive import Links
from adjudge.packages.findings import Finding, Severity
from adjudge.schema.contest_package import ContestImportRead

EXIT_FAILED: Final = 1


def export_package(contest: str, target: Path, *, without_submissions: bool, server: str | None) -> None:
    """Write a contest as a package."""
    with open_client(server) as client:
        content = client.contest_export(contest, submissions=not without_submissions)
    target.write_bytes(content)
    click.echo(f"{target}: {len(content)} bytes")


@click.command("import")
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="FILE|FOLDER")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and everything that is wrong.")
@click.option("--slug", help="Slug of the contest. Default: its ID in the package.")
@click.option("--verify", is_flag=True, help="Verify the jury solutions of new problems in the background.")
@json_option
@server_option
@follow_links_option
def import_(
    *, source: Path, dry_run: bool, slug: str | None, verify: bool, as_json: bool, server: str | None, links: Links
) -> None:
    """Import a contest package (ZIP or folder) as a new contest.

    Importing an unchanged package again changes nothing. Exit codes: 0 imported or unchanged, 1 refused.
    """
    data = source.read_bytes() if source.is_file() else zip_package(source, links)
    with open_client(server) as client:
        report = client.contest_import(
            data, preview=dry_run, slug=slug, verify=verify, file_name=f"{source.resolve().stem}.zip"
        )
    if as_json:
        print_json(report)
    else:
        _print(report)
    if any(item.severity == "error" for item in report.findings):
        raise SystemExit(EXIT_FAILED)


def _print(report: ContestImportRead) -> None:
    for item in report.findings:
        click.echo(str(Finding(Severity(item.severity), item.path, item.line, item.message, item.fix)))
    if report.is_unchanged:
        click.echo(f"{report.contest}: unchanged")
        return
    table = Table("kind", "ID", "name", "action")
    for entry in report.items:
        table.add_row(entry.kind, escape(entry.code), escape(entry.name), entry.action)
    if report.items:
        make_console().print(table)
    for import_id in report.verifications:
        click.echo(f"verification: {import_id}")
    if not report.is_preview:
        click.echo(f"{report.contest}: imported")
