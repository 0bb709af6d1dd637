"""The command line: the composition root, one file per command.

What belongs here: reading settings, wiring objects, printing. What does not: any rule of the system itself.

A command is a row in ``COMMANDS`` and a module that exposes a click object named ``command``. Modules are imported
only when their command is asked for, so ``adjudge judge`` never pays for the web server. Exit codes: 0 done, 3 the
caller can fix it (bad input, unknown option), 2 Adjudge itself failed.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from adjudge import __version__
from adjudge.domain.errors import AdjudgeError
from adjudge.observe import logs

COMMANDS: Final[dict[str, str]] = {
    "api": "adjudge.cli.api",
    "chain": "adjudge.cli.chain",
    "check": "adjudge.cli.check",
    "config": "adjudge.cli.config",
    "dlq": "adjudge.cli.dlq",
    "doctor": "adjudge.cli.doctor",
    "gc": "adjudge.cli.gc",
    "problem": "adjudge.cli.problem",
    "judge": "adjudge.cli.judge",
    "languages": "adjudge.cli.languages",
    "login": "adjudge.cli.login",
    "logout": "adjudge.cli.logout",
    "problems": "adjudge.cli.problems",
    "rejudge": "adjudge.cli.rejudge",
    "run": "adjudge.cli.run",
    "scheduler": "adjudge.cli.scheduler",
    "status": "adjudge.cli.status",
    "submit": "adjudge.cli.submit",
    "up": "adjudge.cli.up",
    "user": "adjudge.cli.user",
    "worker": "adjudge.cli.worker",
    "workers": "adjudge.cli.workers",
}
"""Command name → module with a click object named ``command``."""

EXIT_OUR_FAILURE: Final = 2
EXIT_BAD_INPUT: Final = 3

T = TypeVar("T")


class CommandTable(click.Group):
    """A click group that reads ``COMMANDS`` lazily and is the one place that turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Every command, in the table's order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """Import the one command that was asked for."""
        module_name = COMMANDS.get(cmd_name)
        if module_name is None:
            return None
        command = importlib.import_module(module_name).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module_name}.command is not a click command")
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the root's own options."""
        return _mapped(lambda: super(CommandTable, self).make_context(info_name, args, parent, **extra))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        return _mapped(lambda: super(CommandTable, self).invoke(ctx))


def _mapped(step: Callable[[], T]) -> T:
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


@click.command(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="adjudge")
def main() -> None:
    """Run Adjudge, an online judge that never loses, duplicates or reorders a verdict."""
    logs.configure("warning")  # a command that serves sets its own level from the settings
