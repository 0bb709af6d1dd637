"""The command line: the composition root, one file per command.

What belongs here: reading settings, wiring objects, printing. What does not: any rule of the system itself.

A command is a row in ``COMMANDS`` and a module of its own with a click object named ``command``. The module is imported
when the command is called: ``adjudge judge`` never pays for the web server, and ``adjudge --help`` for nothing at all.
Exit codes: 0 done, 3 the caller can fix it (bad input, unknown option), 2 Adjudge itself failed.
"""

from __future__ import annotations

import pkgutil
import traceback
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from adjudge import __version__
from adjudge.domain.errors import AdjudgeError
from adjudge.observe import logs

EXIT_OUR_FAILURE: Final = 2
EXIT_BAD_INPUT: Final = 3

T = TypeVar("T")


class LazyCommand(click.Command):
    """Stands for the command at ``place`` (``module:name``) in help and completion, and becomes it when it is called.

    ``help`` is the first sentence of what the command says of itself, word for word: a test holds the two together.
    """

    def __init__(self, name: str, place: str, help: str) -> None:  # noqa: A002  # click's name
        super().__init__(name, help=help)
        self.place = place

    def load(self) -> click.Command:
        """The command itself; imports its module."""
        command = pkgutil.resolve_name(self.place)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.place} is not a click command")
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """A context of the command itself: whatever follows has to do with that alone."""
        return self.load().make_context(info_name, args, parent, **extra)


_SUMMARIES: Final = {
    "api": "Run an API server.",
    "chain": "Manage chains and chain runs on a server.",
    "check": "Run a checker on one output and print the verdict.",
    "config": "Show all effective settings and their sources.",
    "dlq": "Manage dead letters: jobs that failed on their last attempt.",
    "doctor": "Check whether the sandbox works on this machine.",
    "gc": "Delete stored files that nothing refers to.",
    "judge": "Judge a solution against a problem package, without a server.",
    "languages": "List languages, their installed versions and missing packages.",
    "login": "Log in to a server with a password or an API token.",
    "logout": "Log out of a server. A token created by `adjudge login` is revoked.",
    "migrate": "Look at the database's schema, upgrade it, or take an upgrade back.",
    "problem": "Create, check, verify, convert and publish problem packages.",
    "problems": "List, show and upload problems on a server.",
    "rejudge": "Rejudge submissions: create, preview, apply or discard a batch.",
    "run": "Run one program in the sandbox.",
    "scheduler": "Run a scheduler: dispatch, recovery and chain triggers.",
    "secret": "Manage secrets that nodes of chains use: set, list, delete, rotate, key.",
    "status": "Show submissions by ID, or the latest ones.",
    "submit": "Submit FILE to a server and show the results live.",
    "up": "Run all roles in one process (API, scheduler, worker).",
    "user": "Manage users in the configured database.",
    "worker": "Run a worker: judges submissions and executes chain nodes.",
    "workers": "List online workers with slots, languages and health.",
}
COMMANDS: Final = {name: LazyCommand(name, f"adjudge.cli.{name}:command", help_) for name, help_ in _SUMMARIES.items()}


class RootGroup(click.Group):
    """The one place that turns errors into exit codes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the root's own options."""
        return _with_exit_codes(lambda: super(RootGroup, self).make_context(info_name, args, parent, **extra))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        return _with_exit_codes(lambda: super(RootGroup, self).invoke(ctx))


def _with_exit_codes(step: Callable[[], T]) -> T:
    try:
        return step()
    except AdjudgeError as error:
        # Standard output stays clean for machines.
        click.echo(f"adjudge: {error.message} [{error.code}]", err=True)
        raise click.exceptions.Exit(EXIT_BAD_INPUT if error.http_status < 500 else EXIT_OUR_FAILURE) from error
    except click.UsageError as error:
        error.show()
        raise click.exceptions.Exit(EXIT_BAD_INPUT) from error
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except Exception as error:  # the outermost frame: whatever nobody foresaw is our failure, shown whole
        traceback.print_exc()
        raise click.exceptions.Exit(EXIT_OUR_FAILURE) from error


@click.group(cls=RootGroup, commands=[*COMMANDS.values()], context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="adjudge")
def main() -> None:
    """Adjudge: an online judge and a job chain engine."""
    logs.configure("warning")  # a command that serves sets its own level from the settings
