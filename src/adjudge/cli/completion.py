"""``adjudge completion``: prints the completion script of a shell; and completion of slugs from the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from adjudge.cli.connection import LoginStore
from adjudge.client import Client, ClientError
from adjudge.client.retry import ClientRetryPolicy
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.retry import RetryPolicy

_VARIABLE: Final = "_ADJUDGE_COMPLETE"
_TIMEOUT_SEC: Final = 2.0
_MOST: Final = 100
_NO_RETRY: Final = ClientRetryPolicy(RetryPolicy(max_retries=0))


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    For bash: `adjudge completion bash > ~/.local/share/bash-completion/completions/adjudge`. Slugs of problems and
    contests are completed from the server of the latest login.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"No completion for {shell}.")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "adjudge", _VARIABLE).source())


def complete_problem(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Slugs of problems that begin with what was typed; in a contest, labels."""
    del param
    contest = ctx.params.get("contest")
    if contest:
        return _complete(ctx, incomplete, lambda client: _titles(client.contest_problems(contest).items, "label"))
    return _complete(ctx, incomplete, lambda client: _titles(client.problems(limit=_MOST).items, "slug"))


def complete_contest(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Slugs of contests that begin with what was typed."""
    del param
    return _complete(ctx, incomplete, lambda client: _titles(client.contests(limit=_MOST).items, "slug"))


def _titles(rows: Iterable[Any], name: str) -> list[tuple[str, str]]:
    return [(getattr(row, name), row.title) for row in rows]


def _complete(
    ctx: click.Context, incomplete: str, names: Callable[[Client], list[tuple[str, str]]]
) -> list[CompletionItem]:
    """Ask the server; without one, or without an answer, nothing is completed."""
    try:
        url, login = LoginStore().find(ctx.params.get("server"))
        with Client(url, login.token, timeout_sec=_TIMEOUT_SEC, retry=_NO_RETRY) as client:
            found = [CompletionItem(name, help=title) for name, title in names(client) if name.startswith(incomplete)]
    except (AdjudgeError, ClientError, OSError):
        return []
    return found[:_MOST]
