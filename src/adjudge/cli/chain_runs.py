"""The commands of ``adjudge chain`` for runs and nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import click
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.options import aliased_option, limit_option, reason_option, required_reason_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.references import find_run_id, run_argument, run_reference
from adjudge.client import Client
from adjudge.domain.errors import InvalidInput
from adjudge.schema.chain_runs import ChainRunRead, NodeRead

F = TypeVar("F", bound=Callable[..., Any])
STATES: Final = {
    "pending": "dim",
    "running": "cyan",
    "retrying": "yellow",
    "stopping": "yellow",
    "success": "green",
    "failed": "red",
    "stopped": "magenta",
    "skipped": "dim",
}
"""Colour of each status."""
EXIT_NOT_DONE: Final = 1
_ENDED: Final = frozenset({"success", "failed", "stopped", "skipped"})
_LOOK_SEC: Final = 1.0
_ROWS: Final = 30
"""Maximum number of nodes in a live table; active ones come first."""
_reason = reason_option()
_decision_reason = required_reason_option("Reason, stored with the decision.")


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
            _follow(client, started.run_id)


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
        table.add_row(called, _state(item.status), nodes, who, item.created_at, item.id)
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
            _follow(client, run_id)
            return
        found, nodes = client.run(run_id), client.run_nodes(run_id)
    console = make_console()
    console.print(_table(found, {node.node_id: node for node in nodes}, limit=len(nodes)))


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
@click.argument("node_id", metavar="NODE")
@_reason
@server_option
def retry(reference: str, node_id: str, reason: str, server: str | None) -> None:
    """Retry a failed or stopped node."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        _print_node(client.node_retry(run_id, node_id, reason=reason))


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("node_id", metavar="NODE")
@click.option("--artifact", help="Artifact to store for the node, as JSON.")
@_reason
@server_option
def complete(reference: str, node_id: str, artifact: str | None, reason: str, server: str | None) -> None:
    """Mark a failed, stopped or running node as success."""
    try:
        left = json.loads(artifact) if artifact else None
    except ValueError as error:
        raise InvalidInput(f"--artifact: invalid JSON: {error}.", field="artifact") from None
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        _print_node(client.node_complete(run_id, node_id, artifact=left, reason=reason))


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("node_id", metavar="NODE")
@click.option("--yes/--no", "approved", default=True, hidden=True)
@_decision_reason
@server_option
def approve(reference: str, node_id: str, approved: bool, reason: str, server: str | None) -> None:
    """Approve a node that waits for approval."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        decide = client.node_approve if approved else client.node_reject
        _print_node(decide(run_id, node_id, reason=reason))


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("node_id", metavar="NODE")
@_decision_reason
@server_option
def reject(reference: str, node_id: str, reason: str, server: str | None) -> None:
    """Reject a node that waits for approval."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        _print_node(client.node_reject(run_id, node_id, reason=reason))


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
            _follow(client, started.run_id)


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("node_id", metavar="NODE")
@click.option("--follow", is_flag=True, help="Follow the log until the node finishes.")
@server_option
def logs(reference: str, node_id: str, follow: bool, server: str | None) -> None:
    """Print the log of a node, all attempts."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        last = 0
        while True:
            is_finished = client.node(run_id, node_id).status in _ENDED  # read before its log
            while lines := client.node_log(run_id, node_id, after=last):
                for line in lines:
                    click.echo(line.text)
                last = lines[-1].id
            if is_finished or not follow:
                return
            time.sleep(_LOOK_SEC)


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("node_id", metavar="NODE")
@click.option(
    "--file", "digest", metavar="DIGEST", help=("Download this file of the artifact instead of the artifact.")
)
@aliased_option(
    "--output", aliases=["--to"], type=click.File("wb"), default="-", help="Output file. Default: standard output."
)
@server_option
def artifact(reference: str, node_id: str, digest: str | None, output: BinaryIO, server: str | None) -> None:
    """Download the artifact of a node as JSON, or one of its files."""
    with open_client(server) as client:
        run_id = find_run_id(client, reference)
        found = client.node_file(run_id, node_id, digest) if digest else client.node_artifact(run_id, node_id)
    output.write(found if digest else found + b"\n")


RUN_COMMANDS: Final = (start, runs, run, stop, retry, complete, approve, reject, rerun, logs, artifact)


def _print_node(node: NodeRead) -> None:
    click.echo(f"{node.node_id}: {node.status}, attempt {node.attempt}")


def _state(status: str) -> str:
    return f"[{STATES.get(status, 'default')}]{escape(status)}[/]"


def _follow(client: Client, run_id: str) -> None:
    """Show the progress of a run: a live table on a terminal, else a line per change."""
    console = make_console()
    run = client.run(run_id)
    run = _live(console, client, run) if console.is_terminal else _lines(console, client, run)
    console.print(f"{_state(run.status)} {escape(run_reference(run))} {run.id}")
    if run.status != "success":
        raise click.exceptions.Exit(EXIT_NOT_DONE)


def _lines(console: Console, client: Client, run: ChainRunRead) -> ChainRunRead:
    said: dict[str, str] = {}
    for found in client.run_watch(run.id):
        if isinstance(found, NodeRead) and said.get(found.node_id) != (line := _line(found, run)):
            console.print(line)
            said[found.node_id] = line
    return client.run_wait(run.id)


def _line(node: NodeRead, run: ChainRunRead) -> str:
    again = f" (attempt {node.attempt})" if node.attempt > 1 else ""
    failed = f": {escape(node.last_error)}" if node.last_error and node.status in {"failed", "retrying"} else ""
    return f"{_state(node.status)} {escape(node.node_id)}{again}{failed}{escape(_approval_hint(node, run))}"


def _approval_hint(node: NodeRead, run: ChainRunRead) -> str:
    """The question of an approval node and the command that approves it."""
    if node.type != "wait_approval" or node.status != "running":
        return ""
    asked = f"{node.artifact['question']}  " if isinstance(node.artifact, dict) and "question" in node.artifact else ""
    return f"  {asked}approval required: adjudge chain approve {run_argument(run)} {node.node_id} --reason …"


def _live(console: Console, client: Client, run: ChainRunRead) -> ChainRunRead:
    nodes: dict[str, NodeRead] = {}
    with Live(_table(run, nodes), console=console, refresh_per_second=8) as live:
        for found in client.run_watch(run.id):
            if isinstance(found, ChainRunRead):
                run = found
            else:
                nodes[found.node_id] = found
            live.update(_table(run, nodes))
    return client.run_wait(run.id)


def _table(run: ChainRunRead, nodes: dict[str, NodeRead], limit: int = _ROWS) -> Table:
    ended = run.nodes_total - run.nodes_open
    waits = ", queued (concurrency limit)" if run.place == "wanted" else ""
    title = f"{escape(run_reference(run))}: {_state(run.status)}{waits}, {ended} of {run.nodes_total} nodes"
    table = Table("node", "status", "type", "attempt", "", title=title, title_justify="left")
    order = {"running": 0, "retrying": 0, "failed": 1, "stopped": 1}
    shown = list(nodes.values())
    if len(shown) > limit:
        shown.sort(key=lambda node: order.get(node.status, 2))
    for node in shown[:limit]:
        waits = "queued (concurrency limit)" if node.place == "wanted" else ""
        said = escape(node.last_error or waits or _approval_hint(node, run).strip())
        table.add_row(escape(node.node_id), _state(node.status), escape(node.type), str(node.attempt), said)
    return table
