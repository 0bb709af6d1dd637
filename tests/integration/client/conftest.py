"""A running server and a contest on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge.domain.permissions import Role
from adjudge.services.users import UserSpec
from tests.support.contest_cli import PASSWORD, log_in, run, shown
from tests.support.http_server import RunningServer, serve
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem

SETTINGS = """
slug: spring
title: Spring Contest
duration_sec: 18000
freeze_after_sec: 14400
starts_at: 2100-01-31T12:00:00Z
format_cfg: {penalty_minutes: 10}
"""
PROBLEMS = """
problems:
  - {problem: sum, label: S, color: red, rgb: "#ff0000", points: 50, closes_after_sec: 7200}
"""


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    """The application, served; logins are stored in the test's own folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with serve(sqlite_url, tmp_path, OPEN_GATE) as server:
        yield server


@pytest.fixture
def published(server: RunningServer) -> PublishedProblem:
    return server.do(publish_problem(server.api))


@pytest.fixture
def contest(server: RunningServer, published: PublishedProblem, tmp_path: Path) -> str:
    """A draft with one problem, created from files by an admin."""
    for name, role in (("ada", Role.ADMIN), ("bob", Role.CONTESTANT)):
        order = UserSpec(name, role, None, password=PASSWORD, must_change_password=False)
        server.do(server.api.services.users.create_user(order, actor="test"))
    assert published.slug == "sum"
    log_in(server, "ada")
    (tmp_path / "contest.yaml").write_text(SETTINGS)
    (tmp_path / "problems.yaml").write_text(PROBLEMS)
    assert shown("create", "--file", str(tmp_path / "contest.yaml"))["state"] == "draft"
    saved = run("problems", "set", "spring", "--file", str(tmp_path / "problems.yaml"))
    assert (saved.exit_code, "sum is published" in saved.stderr) == (0, True)
    return "spring"
