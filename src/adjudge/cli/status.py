"""``adjudge status``: shows submissions."""

from __future__ import annotations

import dataclasses
import json

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.references import find_submission_id
from adjudge.cli.verdicts import format_test_result, print_submission, styled_verdict_or_status
from adjudge.schema.submissions import SubmissionRead


@click.command(name="status")
@click.argument("references", nargs=-1, metavar="[NUMBER|ID]...")
@click.option("--problem", help="Filter by problem.")
@limit_option(default=20, maximum=100)
@click.option("--wait", is_flag=True, help="Wait until all have a verdict.")
@json_option
@server_option
def command(
    *, references: tuple[str, ...], problem: str | None, limit: int, wait: bool, as_json: bool, server: str | None
) -> None:
    """Show submissions by number or ID, or the latest ones."""
    with open_client(server) as client:
        if not references:
            found = client.submissions(problem=problem, limit=limit).items
        elif wait:
            found = client.wait([find_submission_id(client, item) for item in references])
        else:
            found = tuple(client.submission(item) for item in references)
        results = client.results(found[0].id) if len(references) == 1 else None
    if as_json:
        click.echo(json.dumps([_plain(item) for item in found]))
        return
    console = make_console()
    if results is None:
        console.print(_table(found))
        return
    for case in (results.document or {}).get("cases", ()):
        console.print(format_test_result(case))
    print_submission(console, found[0], results)


def _table(found: tuple[SubmissionRead, ...]) -> Table:
    table = Table("number", "verdict", "problem", "language", "user", "time", "submitted", "id")
    for item in found:
        used = f"{item.time_ms} ms" if item.time_ms is not None else ""
        table.add_row(
            f"#{item.number}",
            styled_verdict_or_status(item.verdict, item.status),
            escape(item.problem),
            escape(item.language),
            escape(item.user_name),
            used,
            item.created_at,
            item.id,
        )
    return table


def _plain(item: SubmissionRead) -> dict[str, object]:
    return dataclasses.asdict(item) | dict(item.extra)
