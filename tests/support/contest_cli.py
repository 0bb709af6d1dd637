"""Runs ``adjudge contest`` in the test's process."""

from __future__ import annotations

import json
from typing import Any, Final

from click.testing import CliRunner, Result

from adjudge.cli import main
from tests.support.http_server import RunningServer

PASSWORD: Final = "correct horse battery"


def run(*argv: str) -> Result:
    """The result of a command."""
    return CliRunner().invoke(main, ["contest", *argv])


def shown(*argv: str) -> Any:
    """The JSON output of a command that succeeds."""
    answer = run(*argv, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def log_in(server: RunningServer, name: str) -> None:
    """Let the following commands be those of a user."""
    answer = CliRunner().invoke(main, ["login", server.url, "--name", name], input=f"{PASSWORD}\n")
    assert answer.exit_code == 0, answer.output
