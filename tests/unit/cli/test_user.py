"""``adjudge user`` end to end on SQLite."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli import main


@pytest.fixture(autouse=True)
def _own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", f"sqlite:///{tmp_path}/users.db")
    monkeypatch.setenv("ADJUDGE_DATA_DIR", str(tmp_path))


def _run(*argv: str, given: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["user", *argv], input=given)
    return result.exit_code, result.output


def test_user_commands() -> None:
    code, printed = _run("add", "Grace", "--role", "admin")
    assert (code, "Created grace (admin)" in printed, "One-time password" in printed) == (0, True, True)
    assert _run("add", "robot", "--role", "service", "--as", "ops")[0] == 0
    assert _run("add", "ada", "--password-stdin", given="a long enough secret\n")[0] == 0
    assert _run("add", "GRACE") == (3, "adjudge: That user name is taken; choose another. [NAME_TAKEN]\n")
    assert _run("token", "robot", "--scope", "ops:control")[0] == 3
    assert _run("disable", "ada", "--reason", "left")[0] == 0
    assert _run("disable", "grace")[0] == 3, "the last admin stays"
    code, printed = _run("token", "ada")
    assert (code, "adjudge user enable ada" in printed) == (3, True)
    assert "shown once" in _run("password", "ada")[1]
    listed = {user["name"]: user for user in json.loads(_run("list", "--json")[1])}
    assert {name: user["disabled"] for name, user in listed.items()} == {"ada": True, "grace": False, "robot": False}
    assert _run("enable", "ada")[0] == 0
    assert _run("enable", "nobody") == (3, "adjudge: Not found: user 'nobody'. [USER_NOT_FOUND]\n")


def _token(*argv: str) -> tuple[str, str, dict[str, object]]:
    """Make a token; standard output, standard error, and its row."""
    result = CliRunner().invoke(main, ["user", "token", *argv])
    assert result.exit_code == 0, result.output
    with closing(sqlite3.connect(os.environ["ADJUDGE_DATABASE_URL"].removeprefix("sqlite:///"))) as connection:
        connection.row_factory = sqlite3.Row
        row = connection.execute("SELECT * FROM api_tokens ORDER BY id DESC LIMIT 1").fetchone()
    return result.stdout, result.stderr, dict(row)


@pytest.mark.parametrize(
    ("argv", "days"),
    [((), 90), (("--expires-in-days", "1"), 1), (("--expires-in-days", "0.5"), 0.5), (("--no-expiry",), None)],
)
def test_token_lifetime(argv: tuple[str, ...], days: float | None) -> None:
    _run("add", "grace", "--role", "admin")
    secret, said, row = _token("grace", *argv)
    assert re.fullmatch(r"adj_\S+\n", secret)
    if days is None:
        assert row["expires_at"] is None
        assert "without expiry" in said
    else:
        assert int(str(row["expires_at"])) - int(str(row["created_at"])) == days * 86_400_000_000
        assert "Valid until 20" in said


def test_token_scopes() -> None:
    _run("add", "grace", "--role", "admin")
    _, said, row = _token("grace")
    assert "*" not in str(row["scopes"])
    assert "user:write" not in str(row["scopes"])
    assert "submission:create, submission:read" in said
    _, said, row = _token("grace", "--scope", "*")
    assert "*" in str(row["scopes"])
    assert "all permissions of the user (*)" in said
    _, _, row = _token("grace", "--scope", "chain:read", "--scope", "run:read")
    assert json.loads(str(row["scopes"])) == ["chain:read", "run:read"]


@pytest.mark.parametrize(
    "wrong",
    [("--expires-in-days", "0"), ("--expires-in-days", "-1"), ("--expires-in-days", "4000"), ("--scope", "no:such")],
)
def test_invalid_token_options_are_rejected(wrong: tuple[str, str]) -> None:
    _run("add", "grace", "--role", "admin")
    code, printed = _run("token", "grace", *wrong)
    assert code in (2, 3)
    assert "adj_" not in printed
    assert wrong[0].strip("-") in printed
