"""A new clone, set up as the README says, and a terminal in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import Terminal
from tests.support.install import ROOT
from tests.support.server_process import free_port

_SETTINGS = ("ADJUDGE_", "REDIS_", "JOB_", "MAKE", "MFLAGS", "VIRTUAL_ENV", "PYTEST_", "PYTHON")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git has, set up once with ``make up``'s own first step."""
    folder = tmp_path_factory.mktemp("new") / "a clone"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout: there is nothing to clone")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
    done = subprocess.run(
        ["make", "ready"], cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"a new clone cannot be set up here: {done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _environment() -> dict[str, str]:
    """What a terminal of somebody new has: nothing of ours, and not the tests' virtual environment.

    Somebody who is not root may have no cgroup, and must allow that.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    away = str(ROOT / ".venv")
    kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if not part.startswith(away))
    return kept | {"ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP": "true"}


@pytest.fixture
def terminal(clone: Path, tmp_path: Path) -> Iterator[Terminal]:
    port = free_port()
    environment = {**_environment(), "XDG_CONFIG_HOME": str(tmp_path / "config"), "COLUMNS": "200"}
    opened = Terminal(
        clone, environment, [("make up ", f"make up PORT={port} "), ("127.0.0.1:8080", f"127.0.0.1:{port}")]
    )
    yield opened
    opened.stop()
