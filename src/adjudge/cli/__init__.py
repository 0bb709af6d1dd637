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


class Later(click.Command):
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
    "api": "Serve HTTP; judging and delivering are other processes' work.",
    "chain": "Define chains at a server, start them, and look after their runs.",
    "check": "Compare OUTPUT with the answer, as judging would, and print the verdict and the message.",
    "config": "Show every setting in force and where it came from.",
    "dlq": "Dead letters: jobs that failed on every attempt they had.",
    "doctor": "Say what isolation holds on this machine, and how to get what is missing.",
    "gc": "Remove stored files that no problem, submission or chain names.",
    "judge": "Judge SOLUTION, a file or a folder, against a problem package: no server, no database.",
    "languages": "List the languages with their installed versions, and the package to install for those that "
    "are missing.",
    "login": "Log in at the server at URL with a name and a password, or with an API token.",
    "logout": "Forget the token of a server; one that `adjudge login` made is revoked as well.",
    "migrate": "Look at the database's schema, upgrade it, or take an upgrade back.",
    "problem": "Make, check, verify, convert, show and publish problem packages.",
    "problems": "List the problems of a server, show one, or send one.",
    "rejudge": "Judge submissions again, look at what would change, and let it count or not.",
    "run": "Run one program in the box: adjudge run --cpu-ms 500 -- python3 -c 'print(6 * 7)'.",
    "scheduler": "Deliver jobs to workers, free the jobs of lost ones, start chains when their triggers say so.",
    "secret": "Manage secrets that nodes of chains use: set, list, delete, rotate, key.",
    "status": "Show submissions by ID, one of them with its tests; without an ID, the latest that you may see.",
    "submit": "Hand FILE in at the server, and show each test as it is judged.",
    "up": "Start Adjudge on this machine.",
    "user": "Manage accounts: add, list, disable, enable, password, token.",
    "worker": "Judge submissions and run the nodes of chains.",
    "workers": "List the workers that are alive, with their slots, languages and health.",
}
COMMANDS: Final = {name: Later(name, f"adjudge.cli.{name}:command", help_) for name, help_ in _SUMMARIES.items()}


class Root(click.Group):
    """The one place that turns errors into exit codes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the root's own options."""
        return _mapped(lambda: super(Root, self).make_context(info_name, args, parent, **extra))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        return _mapped(lambda: super(Root, self).invoke(ctx))


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


@click.group(cls=Root, commands=[*COMMANDS.values()], context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="adjudge")
def main() -> None:
    """Run Adjudge, an online judge that never loses, duplicates or reorders a verdict."""
    logs.configure("warning")  # a command that serves sets its own level from the settings
