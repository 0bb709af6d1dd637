"""The command line and composition root, one file per command.

A command is an entry of ``COMMANDS`` and a module with a click object named ``command``. The module is imported when
the command is called: ``adjudge judge`` does not import the web server, and ``adjudge --help`` imports no command.
Exit codes: 0 success, 2 internal error, 3 invalid input. Objects are composed in ``cli/wiring``.
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

EXIT_INTERNAL_ERROR: Final = 2
EXIT_BAD_INPUT: Final = 3

T = TypeVar("T")


class LazyCommand(click.Command):
    """Placeholder for the command at ``path`` (``module:name``) in help and completion; loads it when it is called.

    ``help`` equals the first sentence of the command's own help (checked by a test).
    """

    def __init__(self, name: str, path: str, help: str, *, hidden: bool = False) -> None:  # noqa: A002  # click's name
        super().__init__(name, help=help, hidden=hidden)
        self.path = path

    def load(self) -> click.Command:
        """Import the command's module and return the command."""
        command = pkgutil.resolve_name(self.path)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.path} is not a click command")
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Create the context of the real command, which handles everything from here on."""
        return self.load().make_context(info_name, args, parent, **extra)


_SUMMARIES: Final = {
    "api": "Run an API server.",
    "chain": "Manage chains and chain runs on a server.",
    "check": "Run a checker on one output and print the verdict.",
    "completion": "Print the completion script of a shell.",
    "config": "Show all effective settings and their sources.",
    "contest": "Manage contests on a server.",
    "dlq": "Manage dead letters: jobs that failed on their last attempt.",
    "doctor": "Check whether the sandbox works on this machine.",
    "eval": "Evaluate many programs on their tests: JSON Lines in, JSON Lines out.",
    "gc": "Delete stored files that nothing refers to.",
    "judge": "Judge a solution against a problem package, without a server.",
    "judging": "Pause and resume judging.",
    "languages": "List languages, their installed versions and missing packages.",
    "login": "Log in to a server with a password or an API token.",
    "logout": "Log out of a server.",
    "mail": "Check the mail server.",
    "migrate": "Show, upgrade or downgrade the database schema.",
    "problem": "Manage problem packages, and problems on a server.",
    "rejudge": "Rejudge submissions: create, preview, apply or discard a batch.",
    "run": "Run one program in the sandbox.",
    "scheduler": "Run a scheduler: dispatch, recovery and chain triggers.",
    "secret": "Manage the secrets of chains: set, list, delete, rotate, key.",
    "status": "Show submissions by number or ID, or the latest ones.",
    "submit": "Submit FILE to a server and show the results live.",
    "test": "Run a solution on the samples of its problem, on this machine.",
    "transfer": "Move an installation from SQLite to PostgreSQL and S3.",
    "up": "Run all roles in one process (API, scheduler, worker).",
    "user": "Manage users in the configured database.",
    "worker": "Run a worker: judges submissions and executes chain nodes.",
    "workers": "List live workers, schedulers and API servers; pause, resume and drain workers.",
}
_SEVERAL_IN_A_FILE: Final = {
    "backup": ("backup:create", "Back up an installation on SQLite, while it runs."),
    "restore": ("backup:restore", "Restore a backup into the data directory."),
    "verify-backup": ("backup:verify", "Check every digest of a backup, and its database."),
}
COMMANDS: Final = {
    **{name: LazyCommand(name, f"adjudge.cli.{name}:command", help_) for name, help_ in _SUMMARIES.items()},
    **{name: LazyCommand(name, f"adjudge.cli.{path}", help_) for name, (path, help_) in _SEVERAL_IN_A_FILE.items()},
    "problems": LazyCommand(
        "problems", "adjudge.cli.problem_remote:command", "List, show and upload problems on a server.", hidden=True
    ),
}
"""``problems`` is the former name of the server commands of ``problem``."""


class RootGroup(click.Group):
    """Turns errors into exit codes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options of the root command."""
        return _with_exit_codes(lambda: super(RootGroup, self).make_context(info_name, args, parent, **extra))

    def invoke(self, ctx: click.Context) -> Any:
        return _with_exit_codes(lambda: super(RootGroup, self).invoke(ctx))


def _with_exit_codes(step: Callable[[], T]) -> T:
    try:
        return step()
    except AdjudgeError as error:
        # Errors go to standard error, so that standard output can be parsed.
        click.echo(f"adjudge: {error.message} [{error.code}]", err=True)
        raise click.exceptions.Exit(EXIT_BAD_INPUT if error.http_status < 500 else EXIT_INTERNAL_ERROR) from error
    except click.UsageError as error:
        error.show()
        raise click.exceptions.Exit(EXIT_BAD_INPUT) from error
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except Exception as error:  # outermost frame: an unexpected error is an internal error, shown with its traceback
        traceback.print_exc()
        raise click.exceptions.Exit(EXIT_INTERNAL_ERROR) from error


@click.group(cls=RootGroup, commands=[*COMMANDS.values()], context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="adjudge")
def main() -> None:
    """Adjudge: an online judge and a job chain engine."""
    logs.configure("warning")  # a command that serves sets its own level from the settings
