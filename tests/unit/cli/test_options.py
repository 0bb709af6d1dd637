"""Former spellings of options: accepted, not shown."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from adjudge.cli.options import aliased_option, limit_option


@click.command()
@limit_option(default=20, maximum=100)
@aliased_option("--builtin", "names", aliases=["--shipped"], multiple=True)
def _command(limit: int, names: tuple[str, ...]) -> None:
    click.echo(f"{limit} {','.join(names)}")


@pytest.mark.parametrize(
    ("argv", "printed"),
    [
        ([], "20 \n"),
        (["--limit", "5"], "5 \n"),
        (["--at-most", "5"], "5 \n"),
        (["--builtin", "a", "--shipped", "b"], "20 a,b\n"),
    ],
)
def test_both_spellings_set_the_same_parameter(argv: list[str], printed: str) -> None:
    assert CliRunner().invoke(_command, argv).output == printed


def test_bounds_apply_to_an_alias() -> None:
    assert CliRunner().invoke(_command, ["--at-most", "101"]).exit_code == 2


def test_help_shows_only_the_current_spelling() -> None:
    text = CliRunner().invoke(_command, ["--help"]).output
    assert "--limit" in text
    assert "--at-most" not in text
    assert "--shipped" not in text
