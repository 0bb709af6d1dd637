"""The systemd units: accepted by systemd, with existing commands and settings, and with time to drain."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from adjudge.cli import COMMANDS
from adjudge.settings import CONFIG_VARIABLE, all_settings, environment_names, load
from tests.support.install import ROOT
from tests.support.tools import SYSTEMD_ANALYZE

UNITS = ROOT / "deploy" / "systemd"
PROGRAM = "/opt/adjudge/bin/adjudge"
SERVICES = sorted(UNITS.glob("*.service"))
JUDGING = [UNITS / "adjudge.service", UNITS / "adjudge-worker@.service"]
EXPOSURE = {"adjudge-api": 15, "adjudge-scheduler": 15, "adjudge-gc": 16, "adjudge-worker@": 55, "adjudge": 55}
"""The highest accepted exposure level of `systemd-analyze security`, in tenths."""


def directives(unit: Path) -> dict[str, list[str]]:
    """All values of each directive, in order."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", "[")):
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they are installed, with a program at the expected path."""
    folder = shutil.copytree(UNITS, tmp_path / "units")
    program = tmp_path / "adjudge"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for unit in folder.glob("*.service"):
        unit.write_text(unit.read_text().replace(PROGRAM, str(program)))
    return folder


@pytest.mark.parametrize("name", [path.name for path in sorted(UNITS.iterdir()) if path.suffix != ".conf"])
def test_systemd_accepts_unit(installed: Path, name: str) -> None:
    if name.endswith(".example"):
        return
    done = SYSTEMD_ANALYZE.run(["verify", "--man=no", installed / name], env={"SYSTEMD_LOG_LEVEL": "warning"})
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip(), done.stderr


@pytest.mark.parametrize("unit", SERVICES, ids=lambda path: path.stem)
def test_exposure_is_limited(installed: Path, unit: Path) -> None:
    threshold = EXPOSURE[unit.stem]
    options = ["security", "--offline=true", "--no-pager", f"--threshold={threshold}"]
    done = SYSTEMD_ANALYZE.run([*options, installed / unit.name])
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr


@pytest.mark.parametrize("unit", SERVICES, ids=lambda path: path.stem)
def test_commands_and_settings_of_units_exist(unit: Path) -> None:
    found = directives(unit)
    (start,) = found["ExecStart"]
    program, command = start.split()
    assert program == PROGRAM
    assert command in COMMANDS
    known = {name for _, _, setting in all_settings() for name in environment_names(setting)}
    given = {value.partition("=")[0] for value in found.get("Environment", [])}
    assert given <= known | {"XDG_RUNTIME_DIR"}
    assert found["User"] == ["adjudge"]
    assert found["NoNewPrivileges"] == ["yes"]


def test_example_environment_has_known_settings_and_no_secret() -> None:
    text = (UNITS / "adjudge.env.example").read_text()
    given = dict(re.findall(r"^#?(ADJUDGE_[A-Z0-9_]+)=(.*)$", text, re.MULTILINE))
    settings = {name: setting for _, _, setting in all_settings() for name in environment_names(setting)}
    assert given.keys() <= settings.keys() | {CONFIG_VARIABLE}
    loaded = load(environ={name: value for name, value in given.items() if name != CONFIG_VARIABLE})
    assert not loaded.unknown_variables
    secret = {entry.name for entry in loaded.entries() if type(entry.value).__name__ in {"Secret", "DatabaseUrl"}}
    assert secret
    assert all(loaded.sources[name] == "default" for name in secret)


@pytest.mark.parametrize("unit", JUDGING, ids=lambda path: path.stem)
def test_worker_drains_before_it_is_killed(unit: Path) -> None:
    """SIGTERM goes to the worker only; its sandboxes run on until the jobs have finished or the drain time is over."""
    found, defaults = directives(unit), load(environ={})
    assert found["KillSignal"] == ["SIGTERM"]
    assert found["KillMode"] == ["mixed"]
    needed = defaults.worker.drain_sec + defaults.database.timeout_sec + defaults.server.shutdown_sec
    assert int(found["TimeoutStopSec"][0]) > needed


def test_log_level_is_changed_by_reload() -> None:
    for name in ("adjudge", "adjudge-api", "adjudge-scheduler", "adjudge-worker@"):
        assert directives(UNITS / f"{name}.service")["ExecReload"] == ["/bin/kill -HUP $MAINPID"]


def test_api_finishes_requests_before_it_is_killed() -> None:
    found, defaults = directives(UNITS / "adjudge-api.service"), load(environ={})
    assert int(found["TimeoutStopSec"][0]) > defaults.server.shutdown_sec
    assert found["KillMode"] == ["mixed"]


@pytest.mark.parametrize("unit", JUDGING, ids=lambda path: path.stem)
def test_sandbox_can_work_in_the_unit(unit: Path) -> None:
    """A delegated cgroup, an uncovered /proc, namespaces, and no stop when a program exceeds its memory limit."""
    found = directives(unit)
    assert found["Delegate"] == ["yes"]
    assert found["OOMPolicy"] == ["continue"]
    assert found["TasksMax"] == ["infinity"]
    covering = {"ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset", "ProtectControlGroups"}
    inherited = {"RestrictNamespaces", "ProtectHostname", "SystemCallFilter", "MemoryDenyWriteExecute", "PrivateUsers"}
    assert not (covering | inherited) & found.keys()


def test_workers_share_the_locks_of_slots() -> None:
    """The directory is created by the units and stays when one of several workers stops."""
    assert re.search(r"^u adjudge ", (UNITS / "adjudge.sysusers.conf").read_text(), re.MULTILINE)
    for unit in JUDGING:
        found = directives(unit)
        assert "XDG_RUNTIME_DIR=/run/adjudge" in found["Environment"]
        assert (found["RuntimeDirectory"], found["RuntimeDirectoryPreserve"]) == (["adjudge"], ["yes"])
