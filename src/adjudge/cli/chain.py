"""``adjudge chain``: manages chains on a server. ``chain_runs`` and ``chain_nodes`` have further commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from adjudge.chains import builtin
from adjudge.chains.definition_file import ChainDefinition, read_definition
from adjudge.cli.chain_nodes import NODE_COMMANDS
from adjudge.cli.chain_progress import STATES
from adjudge.cli.chain_runs import RUN_COMMANDS
from adjudge.cli.connection import open_client
from adjudge.cli.dag_text import draw
from adjudge.cli.options import aliased_option, server_option
from adjudge.cli.output import make_console
from adjudge.cli.references import find_run_id
from adjudge.client import TriggerSpec
from adjudge.domain.chain_parser import parse_dag
from adjudge.domain.errors import InvalidInput
from adjudge.schema.chains import ChainApplyRead, TriggerRead


@click.group(name="chain")
def command() -> None:
    """Manage chains and chain runs on a server."""


for _command in (*RUN_COMMANDS, *NODE_COMMANDS):
    command.add_command(_command)


@command.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@aliased_option(
    "--builtin",
    "names",
    aliases=["--shipped"],
    multiple=True,
    type=click.Choice(builtin.list_builtin()),
    help="A built-in chain. May be repeated.",
)
@server_option
def apply(files: tuple[Path, ...], names: tuple[str, ...], server: str | None) -> None:
    """Create or update chains from YAML or JSON files.

    Chains are matched by name. Triggers missing from the file are deleted. A disabled chain stays disabled. Applying
    the same file twice changes nothing.
    """
    if not files and not names:
        known = ", ".join(builtin.list_builtin())
        raise InvalidInput(f"Missing argument: a file, or --builtin with one of: {known}.", field="files")
    definitions = [_read_definition(path) for path in files] + [builtin.load_builtin(name) for name in names]
    with open_client(server) as client:
        for item in definitions:
            triggers = [TriggerSpec(each.name, each.kind, each.spec, each.enabled) for each in item.triggers]
            applied = client.chain_apply(
                item.name, item.dag, description=item.description, enabled=item.enabled, triggers=triggers
            )
            _print_applied(applied)


def _read_definition(path: Path) -> ChainDefinition:
    """Read and validate a chain file; prints all errors of its DAG before any request is sent."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot read file: {error}.", field="file") from None
    definition = read_definition(text, place=str(path))
    try:
        parse_dag(definition.dag)
    except InvalidInput as error:
        problems = error.fields.get("problems")
        listed = problems if isinstance(problems, list) else [error.message]
        for problem in listed:
            click.echo(f"{path}: {problem}", err=True)
        raise InvalidInput(f"{path}: {len(listed)} errors; nothing was applied.", field="dag") from None
    return definition


def _print_applied(applied: ChainApplyRead) -> None:
    click.echo(f"{applied.chain.name}: {applied.outcome}, version {applied.chain.version}")
    for name, outcome in applied.triggers.items():
        click.echo(f"  trigger {name}: {outcome}")
    for name, secret in applied.secrets.items():
        click.echo(f"  secret of trigger {name} (shown once): {secret}")


@command.command("list")
@click.option("--search", default="", help="Filter by name or description.")
@click.option("--page", default=1, show_default=True, type=click.IntRange(1))
@server_option
def list_(search: str, page: int, server: str | None) -> None:
    """List chains."""
    with open_client(server) as client:
        chains = client.chains(keyword=search, page=page, size=100)
    table = Table("name", "version", "state", "updated", "description")
    for item in chains:
        state = "[green]enabled[/]" if item.enabled else "[dim]disabled[/]"
        about = escape((item.description or "").splitlines()[0] if item.description else "")
        table.add_row(escape(item.name), str(item.version), state, item.updated_at, about)
    make_console().print(table)


@command.command()
@click.argument("name")
@server_option
def show(name: str, server: str | None) -> None:
    """Show a chain: description, triggers and DAG."""
    with open_client(server) as client:
        chain, triggers = client.chain(name), client.chain_triggers(name)
    console = make_console()
    state = "" if chain.enabled else ", disabled"
    console.print(f"[bold]{escape(chain.name)}[/]  [dim]{chain.id}, version {chain.version}{state}[/]")
    if chain.description:
        console.print(escape(chain.description))
    for item in triggers:
        console.print(_trigger(item))
    _draw(chain.dag, {})


def _trigger(item: TriggerRead) -> str:
    """A trigger as one line; for a webhook with its URL."""
    spec = escape(json.dumps(dict(item.spec), ensure_ascii=False))
    off = "" if item.enabled else ", disabled"
    called = f", URL: POST /api/v1/triggers/{item.id}:call" if item.kind == "webhook" else ""
    following = f", next {item.next_at}" if item.next_at else ""
    failed = f"  [red]{escape(item.last_error)}[/]" if item.last_error else ""
    return f"trigger {escape(item.name)}: {item.kind} {spec}{off}{called}{following}{failed}"


@command.command()
@click.argument("name")
@server_option
def enable(name: str, server: str | None) -> None:
    """Enable a chain."""
    _set_enabled(name, server, enabled=True)


@command.command()
@click.argument("name")
@server_option
def disable(name: str, server: str | None) -> None:
    """Disable a chain. Current runs continue."""
    _set_enabled(name, server, enabled=False)


def _set_enabled(name: str, server: str | None, *, enabled: bool) -> None:
    with open_client(server) as client:
        chain = client.chain_set_enabled(name, enabled=enabled)
    click.echo(f"{chain.name}: {'enabled' if chain.enabled else 'disabled'}")


@command.command()
@click.argument("name", required=False)
@click.option("--run", "reference", metavar="RUN", help="Draw this run, with nodes coloured by status.")
@server_option
def graph(name: str | None, reference: str | None, server: str | None) -> None:
    """Draw the DAG of a chain, or of a run with --run."""
    if bool(name) == bool(reference):
        raise InvalidInput("Missing argument: a chain name, or --run with a run.", field="name")
    with open_client(server) as client:
        if reference:
            run = client.run(find_run_id(client, reference))
            dag = client.chain_version(run.chain_id, run.chain_version).dag
            states = {node.node_id: node.status for node in client.run_nodes(run.id)}
        else:
            dag, states = client.chain(str(name)).dag, {}
    _draw(dag, states)


def _draw(dag: Any, states: Mapping[str, str]) -> None:
    """Draw the DAG, or list its nodes if it is wider than the terminal."""
    nodes = {str(node["id"]): node for node in dag.get("nodes", ())}
    dependencies = {name: list(node.get("deps") or ()) for name, node in nodes.items()}

    def caption(node: str) -> str:
        return states.get(node, str(nodes[node].get("type", "")))

    drawing = draw(dependencies, caption, lambda node: STATES.get(states.get(node, ""), ""))
    console = make_console()
    if max((len(line) for line in drawing.plain.splitlines()), default=0) <= console.width:
        console.print(drawing)
        return
    for node, needed in dependencies.items():
        after = f"  after {', '.join(needed)}" if needed else ""
        console.print(
            f"[{STATES.get(states.get(node, ''), 'default')}]{escape(node)}[/] ({escape(caption(node))}){after}"
        )
