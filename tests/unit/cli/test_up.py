"""``adjudge up``: start and stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from adjudge.cli.up import _print_sandbox_status
from adjudge.sandbox.doctor import CGROUP_USE, DoctorReport, HostCheck, HostCheckState


@contextmanager
def _start(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ADJUDGE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "adjudge", "up", *options],
        cwd=folder,
        env={**environ, "PYTHONUNBUFFERED": "1", "ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()  # a test that failed half-way leaves nothing behind
        process.communicate()


def _greeting(process: subprocess.Popen[str]) -> list[str]:
    """What it prints until it is ready, line by line: the last line is the sign to go on."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.startswith("Press Ctrl-C"):
            return lines
    pytest.fail(f"it ended instead: {process.communicate()}")


@pytest.mark.parametrize("end", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_starts_on_sqlite_and_stops_cleanly(tmp_path: Path, end: signal.Signals) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    with _start(folder, "--port", "0") as process:
        first, *others = _greeting(process)
        address = first.removeprefix("Adjudge is running at ")
        ready = httpx.get(f"{address}/api/v1/health/ready", timeout=60).json()
        assert {"database": "ok", "blobs": "ok", "stream": "ok"}.items() <= ready["checks"].items()
        password = re.search(r"log in as admin with the one-time password (\S+) ", " ".join(others))
        assert password is not None
        me = httpx.post(f"{address}/api/v1/login", json={"name": "admin", "password": password[1]}, timeout=60).json()
        assert (me["role"], me["must_change_password"]) == ("admin", True)
        assert any(line.endswith("adjudge user token admin") for line in others), "how programs begin"
        assert httpx.get(f"{address}/api/v1/openapi.json", timeout=60).json()["info"]["title"] == "Adjudge"
        process.send_signal(end)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert password[1] not in errors, "what is printed once is never logged"
    assert (folder / "var" / "adjudge.db").exists()


def test_port_in_use_is_reported_with_a_fix(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with _start(tmp_path, "--port", str(port)) as process:
            _, errors = process.communicate(timeout=120)
        assert process.returncode == 3
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in errors
        assert "--port" in errors
        assert "Traceback" not in errors


def test_missing_isolation_is_reported_with_a_fix(capsys: pytest.CaptureFixture[str]) -> None:
    broken = HostCheck(
        "launcher", HostCheckState.MISSING, "there is none", "Programs can be run.", "install gcc", is_required=True
    )
    _print_sandbox_status(DoctorReport((broken,)), (broken,))
    printed = capsys.readouterr().out
    assert "NOT ready" in printed
    assert "launcher: there is none; install gcc" in printed


def test_judging_without_cgroup_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    uncounted = HostCheck(CGROUP_USE, HostCheckState.MISSING, "none", "Not limited.", "run as root", is_required=True)
    _print_sandbox_status(DoctorReport((uncounted,)), ())
    printed = capsys.readouterr().out
    assert "NOT SAFE" in printed
    assert "judge.allow_without_cgroup" in printed
