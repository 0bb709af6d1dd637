"""Shows the progress of a chain run: a live table on a terminal, else a line per change."""

from __future__ import annotations

from typing import Final

import click
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from adjudge.cli.output import make_console
from adjudge.cli.references import run_argument, run_reference
from adjudge.client import Client
from adjudge.schema.chain_runs import ChainRunRead, NodeRead

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
_ROWS: Final = 30
"""Maximum number of nodes in a live table; active ones come first."""


def styled_status(status: str) -> str:
    """The status in its colour."""
    return f"[{STATES.get(status, 'default')}]{escape(status)}[/]"


def follow_run(client: Client, run_id: str) -> None:
    """Show the progress of a run until it finishes; exit with code 1 if it does not succeed."""
    console = make_console()
    run = client.run(run_id)
    run = _live(console, client, run) if console.is_terminal else _lines(console, client, run)
    console.print(f"{styled_status(run.status)} {escape(run_reference(run))} {run.id}")
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
    return f"{styled_status(node.status)} {escape(node.node_id)}{again}{failed}{escape(_approval_hint(node, run))}"


def _approval_hint(node: NodeRead, run: ChainRunRead) -> str:
    """The question of an approval node and the command that approves it."""
    if node.type != "wait_approval" or node.status != "running":
        return ""
    asked = f"{node.artifact['question']}  " if isinstance(node.artifact, dict) and "question" in node.artifact else ""
    return f"  {asked}approval required: adjudge chain approve {run_argument(run)} {node.node_id} --reason …"


def _live(console: Console, client: Client, run: ChainRunRead) -> ChainRunRead:
    nodes: dict[str, NodeRead] = {}
    with Live(run_table(run, nodes), console=console, refresh_per_second=8) as live:
        for found in client.run_watch(run.id):
            if isinstance(found, ChainRunRead):
                run = found
            else:
                nodes[found.node_id] = found
            live.update(run_table(run, nodes))
    return client.run_wait(run.id)


def run_table(run: ChainRunRead, nodes: dict[str, NodeRead], limit: int = _ROWS) -> Table:
    """The nodes of a run as a table."""
    ended = run.nodes_total - run.nodes_open
    waits = ", queued (concurrency limit)" if run.place == "wanted" else ""
    title = f"{escape(run_reference(run))}: {styled_status(run.status)}{waits}, {ended} of {run.nodes_total} nodes"
    table = Table("node", "status", "type", "attempt", "", title=title, title_justify="left")
    order = {"running": 0, "retrying": 0, "failed": 1, "stopped": 1}
    shown = list(nodes.values())
    if len(shown) > limit:
        shown.sort(key=lambda node: order.get(node.status, 2))
    for node in shown[:limit]:
        waits = "queued (concurrency limit)" if node.place == "wanted" else ""
        said = escape(node.last_error or waits or _approval_hint(node, run).strip())
        table.add_row(escape(node.node_id), styled_status(node.status), escape(node.type), str(node.attempt), said)
    return table
