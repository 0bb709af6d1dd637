"""A running server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.http_server import RunningServer, serve
from tests.support.published_problem import OPEN_GATE


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    """The application, served; logins are stored in the test's own folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with serve(sqlite_url, tmp_path, OPEN_GATE) as server:
        yield server
