"""``adjudge rejudge``: creates, previews, applies and discards rejudge batches on a server."""

from __future__ import annotations

import time
from typing import Any, Final

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.options import limit_option, reason_option, required_reason_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.references import find_batch_id, find_submission_id
from adjudge.client import Client
from adjudge.domain.errors import InvalidInput
from adjudge.schema.rejudge import RejudgeBatchRead, RejudgePreviewRead

_LOOK_SEC: Final = 1.0
_RUNNING: Final = "running"
_wait = click.option("--wait", is_flag=True, help="Wait until all submissions are rejudged.")
_reason = reason_option()


@click.group(name="rejudge")
def command() -> None:
    """Rejudge submissions: create, preview, apply or discard a batch."""


@command.command()
@click.argument("references", nargs=-1, metavar="[NUMBER|ID]...")
@click.option("--problem", help="Filter by problem (slug or ID).")
@click.option("--contest", help="Filter by contest.")
@click.option("--user", help="Filter by user ID.")
@click.option("--language", help="Filter by language.")
@click.option("--verdict", help="Filter by verdict.")
@click.option("--since", metavar="TIME", help="Submitted at or after this time, e.g. 2026-01-31T12:00:00Z.")
@click.option("--until", metavar="TIME", help="Submitted before this time.")
@click.option(
    "--policy",
    type=click.Choice(["latest", "best", "first_accepted_stays"]),
    default="latest",
    show_default=True,
    help="Verdict policy: which new verdicts replace the old ones.",
)
@click.option(
    "--revision",
    type=click.Choice(["current", "pinned"]),
    default="current",
    show_default=True,
    help="Test data: the current or the original revision.",
)
@required_reason_option("Reason, stored with the batch.")
@_wait
@server_option
def create(
    *,
    references: tuple[str, ...],
    policy: str,
    revision: str,
    reason: str,
    wait: bool,
    server: str | None,
    **filters: str | None,
) -> None:
    """Create a rejudge batch from submissions or filters and print its ID.

    Verdicts change only after `adjudge rejudge apply`.
    """
    wanted: dict[str, Any] = {name: value for name, value in filters.items() if value}
    if not wanted and not references:
        raise InvalidInput("Missing argument: submissions or at least one filter.", field="filter")
    with open_client(server) as client:
        if references:
            wanted["ids"] = [find_submission_id(client, item) for item in references]
        made = client.rejudge(wanted, reason=reason, policy=policy, revision=revision)
        click.echo(made.id)
        if wait:
            _wait_ready(client, made.id)
            _show(client.rejudge_preview(made.id, limit=100))


@command.command("list")
@limit_option(default=20, maximum=100)
@server_option
def list_(limit: int, server: str | None) -> None:
    """List rejudge batches, newest first."""
    with open_client(server) as client:
        found = client.rejudge_batches(limit=limit).items
    table = Table("number", "state", "judged", "policy", "reason", "id")
    for item in found:
        judged = f"{item.ended}/{item.total}"
        table.add_row(f"#{item.number}", item.state, judged, item.policy, escape(item.reason or ""), item.id)
    make_console().print(table)


@command.command()
@click.argument("reference", metavar="BATCH")
@click.option("--all", "everything", is_flag=True, help="Include submissions whose verdict would not change.")
@_wait
@server_option
def show(reference: str, everything: bool, wait: bool, server: str | None) -> None:
    """Show a batch, by number or ID: progress and verdict changes."""
    with open_client(server) as client:
        batch_id = find_batch_id(client, reference)
        if wait:
            _wait_ready(client, batch_id)
        _show(client.rejudge_preview(batch_id, only_different=not everything, limit=100))


@command.command()
@click.argument("reference", metavar="BATCH")
@click.option("--skip-changed", is_flag=True, help="Skip submissions that have changed since, instead of failing.")
@server_option
def apply(reference: str, skip_changed: bool, server: str | None) -> None:
    """Apply the new verdicts in one transaction."""
    with open_client(server) as client:
        done = client.rejudge_apply(find_batch_id(client, reference), skip_changed=skip_changed)
    counts = f"{done.changed} changed, {done.kept} kept, {done.skipped} skipped"
    click.echo(f"#{done.batch.number}: {done.batch.state}; {counts}")


@command.command()
@click.argument("reference", metavar="BATCH")
@_reason
@server_option
def discard(reference: str, reason: str, server: str | None) -> None:
    """Discard a batch. Verdicts stay unchanged."""
    with open_client(server) as client:
        _print_batch(client.rejudge_discard(find_batch_id(client, reference), reason=reason))


@command.command()
@click.argument("reference", metavar="BATCH")
@_reason
@server_option
def cancel(reference: str, reason: str, server: str | None) -> None:
    """Cancel a running batch."""
    with open_client(server) as client:
        _print_batch(client.rejudge_cancel(find_batch_id(client, reference), reason=reason))


def _print_batch(batch: RejudgeBatchRead) -> None:
    click.echo(f"#{batch.number}: {batch.state}, {batch.ended} of {batch.total} judged")


def _wait_ready(client: Client, batch_id: str) -> None:
    console = make_console()
    shown = -1
    while (batch := client.rejudge_batch(batch_id)).state == _RUNNING:
        if batch.ended != shown:
            shown = batch.ended
            console.print(f"{batch.ended} of {batch.total} judged")
        time.sleep(_LOOK_SEC)


def _show(found: RejudgePreviewRead) -> None:
    console = make_console()
    _print_batch(found.batch)
    _print_changes(console, found)
    table = Table("before", "after", "submission", "")
    for item in found.items:
        note = "changed since" if item.has_changed else ""
        table.add_row(item.old_verdict or "", item.new_verdict or "", f"#{item.submission_number}", note)
    if found.items:
        console.print(table)
    if found.next:
        console.print("More results: see the batch's page.")


def _print_changes(console: Console, found: RejudgePreviewRead) -> None:
    for item in found.differences:
        console.print(f"{item.count}: {item.old_verdict} → {item.new_verdict or item.outcome or 'pending'}")
