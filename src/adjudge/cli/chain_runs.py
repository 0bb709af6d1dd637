"""The commands of ``adjudge chain`` for runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.chain_progress import follow_run, run_table, styled_status
from adjudge.cli.connection import open_client
from adjudge.cli.options import aliased_option, limit_option, reason_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.references import find_run_id, run_reference
from adjudge.domain.errors import InvalidInput

_reason = reason_option()


@click.command()
@click.argument("name")
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="KEY=VALUE",
    help=("Run parameter. VALUE is parsed as JSON, otherwise used as a string."),
)
@click.option(
    "--file", "files", multiple=True, metavar="KEY=PATH", help=("Upload a file and set parameter KEY to its digest.")
)
@aliased_option(
    "--idempotency-key", "key", aliases=["--key"], help="Repeated calls with the same key start only one run."
)
@click.option("--wait", is_flag=True, help="Wait until the run finishes and show its progress.")
@_reason
@server_option
def start(
    *,
    name: str,
    parameters: tuple[str, ...],
    files: tuple[str, ...],
    key: str | None,
    wait: bool,
    reason: str,
    server: str | None,
) -> None:
    """Start a run and print its ID.

    Exit codes with --wait: 0 success, 1 failed or stopped. Without --wait: 0 started.
    """
    given, contents = _parameters(parameters), _contents(files)
    if twice := sorted(given.keys() & contents.keys()):
        raise InvalidInput(f"--file {twice[0]}: also set by --param; use only one of them.", field="file")
    with open_client(server) as client:
        given |= {field: client.file_upload(content).digest for field, content in contents.items()}
        started = client.chain_start(name, parameters=given, reason=reason, key=key)
        click.echo(started.run_id)
        if wait:
            follow_run(client, started.run_id)


def _parameters(given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in given:
        key, value = _pair(item, "param", "KEY=VALUE")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _contents(given: tuple[str, ...]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for item in given:
        key, path = _pair(item, "file", "KEY=PATH")
        try:
            found[key] = Path(path).read_bytes()
        except OSError as error:
            raise InvalidInput(f"--file {path}: {error.strerror}.", field="file") from None
    return found


def _pair(item: str, option: str, form: str) -> tuple[str, str]:
    key, is_there, value = item.partition("=")
    if not is_there or not key:
        raise InvalidInput(f"--{option} {item!r}: expected {form}.", field=option)
    return key, value


@click.command()
@click.option("--chain", help="Filter by chain.")
@click.option("--status", help="Filter by status.")
@limit_option(default=20, maximum=100)
@server_option
def runs(chain: str | None, status: str | None, limit: int, server: str | None) -> None:
    """List runs, newest first."""
    with open_client(server) as client:
        found = client.runs(chain=chain, status=status, limit=limit).items
    table = Table("run", "status", "nodes", "started by", "started", "id")
    for item in found:
        ended = item.nodes_total - item.nodes_open
        who = escape(item.started_by or item.trigger_kind)
        called, nodes = escape(run_reference(item)), f"{ended}/{item.nodes_total}"
        table.add_row(called, styled_status(item.status), nodes, who, item.created_at, item.id)
    make_console().print(table)


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--follow", is_flag=True, help="Follow the run until it finishes.")
@server_option
def run(reference: str, follow: bool, server: str | None) -> None:
    """Show a run (CHAIN#NUMBER or ID) and its nodes. With --follow, exit codes as in `chain start --wait`."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        if follow:
            follow_run(client, run_id)
            return
        found, nodes = client.run(run_id), client.run_nodes(run_id)
    console = make_console()
    console.print(run_table(found, {node.node_id: node for node in nodes}, limit=len(nodes)))


@click.command()
@click.argument("reference", metavar="RUN")
@_reason
@server_option
def stop(reference: str, reason: str, server: str | None) -> None:
    """Stop a run."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        found = client.run_stop(run_id, reason=reason)
    click.echo(f"{run_reference(found)}: {found.status}")


@click.command()
@click.argument("reference", metavar="RUN")
@aliased_option(
    "--from-node",
    aliases=["--from"],
    help="Node to start from. Default: the first nodes. Approvals before it are asked for again.",
)
@click.option("--wait", is_flag=True, help="Wait until the new run finishes and show its progress.")
@_reason
@server_option
def rerun(reference: str, from_node: str | None, wait: bool, reason: str, server: str | None) -> None:
    """Rerun a run from the start or from a node. Prints the new run's ID."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        started = client.run_rerun(run_id, from_node=from_node, reason=reason)
        click.echo(started.run_id)
        if wait:
            follow_run(client, started.run_id)


RUN_COMMANDS: Final = (start, runs, run, stop, rerun)
