"""``adjudge user`` end to end on SQLite."""

from __future__ import annotations

import json
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


def test_a_user_is_added_listed_disabled_and_given_tokens() -> None:
    code, printed = _run("add", "Grace", "--role", "admin")
    assert (code, "grace is admin" in printed, "One-time password" in printed) == (0, True, True)
    assert _run("add", "robot", "--role", "service", "--as", "ops")[0] == 0
    assert _run("add", "ada", "--password-stdin", given="a long enough secret\n")[0] == 0
    assert _run("add", "GRACE") == (3, "adjudge: That user name is taken; choose another. [CONFLICT]\n")
    code, secret = _run("token", "robot", "--scope", "submission:create", "--days", "1")
    assert (code, secret[:4], len(secret.split())) == (0, "adj_", 1)
    assert _run("token", "robot", "--scope", "ops:control")[0] == 3
    code, printed = _run("token", "grace")
    assert (code, "grace has yet to choose a password" in printed) == (0, True), "or it would be refused unexplained"
    assert "choosing one ends it" in printed, "as the box on that page is ticked"
    assert _run("disable", "ada", "--reason", "left")[0] == 0
    assert _run("disable", "grace")[0] == 3, "the last admin stays"
    code, printed = _run("token", "ada")
    assert (code, "adjudge user enable ada" in printed) == (3, True)
    assert "shown this once" in _run("password", "ada")[1]
    listed = {user["name"]: user for user in json.loads(_run("list", "--json")[1])}
    assert {name: user["disabled"] for name, user in listed.items()} == {"ada": True, "grace": False, "robot": False}
    assert _run("enable", "ada")[0] == 0
    assert _run("enable", "nobody") == (3, "adjudge: There is no user 'nobody'. [USER_NOT_FOUND]\n")
