"""The commands of ``adjudge chain`` for the nodes of a run."""

from __future__ import annotations

import json
import time
from typing import BinaryIO, Final

import click

from adjudge.cli.connection import open_client
from adjudge.cli.options import aliased_option, reason_option, required_reason_option, server_option
from adjudge.cli.references import find_run_id
from adjudge.domain.errors import InvalidInput
from adjudge.schema.chain_runs import NodeRead

_ENDED: Final = frozenset({"success", "failed", "stopped", "skipped"})
_LOOK_SEC: Final = 1.0
_reason = reason_option()
_decision_reason = required_reason_option("Reason, stored with the decision.")


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


NODE_COMMANDS: Final = (retry, complete, approve, reject, logs, artifact)


def _print_node(node: NodeRead) -> None:
    click.echo(f"{node.node_id}: {node.status}, attempt {node.attempt}")
