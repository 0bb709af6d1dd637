"""Options that several commands share."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from adjudge.packages.archive import Links

F = TypeVar("F", bound=Callable[..., Any])


class AliasedOption(click.Option):
    """An option that also accepts former spellings, which help and completion do not show."""

    def __init__(self, param_decls: Sequence[str], *, aliases: Sequence[str], **attributes: Any) -> None:
        super().__init__(param_decls, **attributes)
        self.aliases = tuple(aliases)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Register the current spelling, then the aliases."""
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        parser.add_option(obj=self, opts=self.aliases, dest=self.name, action=action, nargs=self.nargs)


def aliased_option(*declarations: str, aliases: Sequence[str], **attributes: Any) -> Callable[[F], F]:
    """``click.option`` with former spellings that are still accepted."""
    return click.option(*declarations, cls=AliasedOption, aliases=aliases, **attributes)


def limit_option(default: int, maximum: int) -> Callable[[F], F]:
    """``--limit``: the maximum number of rows of a list."""
    return aliased_option(
        "--limit",
        aliases=["--at-most"],
        type=click.IntRange(1, maximum),
        default=default,
        show_default=True,
        help="Maximum number of rows.",
    )


def after_option(what: str) -> Callable[[F], F]:
    """``--after``: where a list continues."""
    return click.option("--after", default="", metavar=what.upper(), help=f"Continue after this {what}.")


def reason_option(help_: str = "Reason, stored in the history.") -> Callable[[F], F]:
    """``--reason``: why something is done; empty by default."""
    return click.option("--reason", default="", help=help_)


def required_reason_option(help_: str) -> Callable[[F], F]:
    return click.option("--reason", required=True, help=help_)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
server_option = click.option("--server", metavar="URL", help="Server URL. Default: the last login.")
actor_option = click.option(
    "--as",
    "actor",
    default=getpass.getuser,
    show_default="you",
    help="Actor recorded in the audit log as cli:NAME.",
    callback=lambda _context, _option, name: f"cli:{name}",
)
"""For commands that work on the database directly, without a login."""


def _link_policy(_context: click.Context, _option: click.Parameter, value: bool) -> Links:
    from adjudge.packages.archive import Links  # noqa: PLC0415  # keeps `--help` of other commands fast

    return Links.ANYWHERE if value else Links.REPOSITORY


follow_links_option = click.option(
    "--follow-links",
    "links",
    is_flag=True,
    callback=_link_policy,
    help="Follow links in a folder wherever they lead. Default: inside the folder's Git repository. Never in archives.",
)
"""Passes ``links``, a ``Links`` policy, to the command."""
