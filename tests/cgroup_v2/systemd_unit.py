"""Adds systemd to the disk of the virtual machine, and runs ``adjudge doctor --container`` as the worker's unit does.

The directives are those of ``deploy/systemd/adjudge-worker@.service``; only the command, the environment files and the
restart are replaced. ``ProtectHome`` is left out if the interpreter is in a home directory.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
UNITS = REPOSITORY / "deploy" / "systemd"
INIT = "/usr/lib/systemd/systemd"
_USER = 990
_REPLACED = ("Type", "ExecStart", "EnvironmentFile", "Restart", "RestartSec", "PartOf", "After", "Wants", "WantedBy")
_TARGET = """[Unit]
Description=Run the doctor as a worker
Requires=adjudge-doctor.service
DefaultDependencies=no
"""
_HEAD = """[Unit]
Description=adjudge doctor in the unit of a worker
DefaultDependencies=no
OnSuccess=doctor-report@0.service
OnFailure=doctor-report@1.service
"""
_REPORT = """[Unit]
Description=Print what the doctor said
DefaultDependencies=no
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate

[Service]
Type=oneshot
ExecStart=/bin/sh -c '(echo; cat /run/doctor.log; echo ">>>leg systemd %i"; echo "<<<end") > /dev/ttyS0'
"""
_COMMAND = """Type=oneshot
StandardOutput=append:/run/doctor.log
StandardError=append:/run/doctor.log
ExecStart={python} -m adjudge doctor --container
Environment=PYTHONPATH={repository}/src
"""


def add_systemd(staging: Path) -> None:
    """Copy systemd and write the units; libraries are copied with those of all programs."""
    target = staging / INIT.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(INIT, target)
    units = staging / "etc/systemd/system"
    units.mkdir(parents=True)
    (units / "adjudge-doctor.service").write_text(doctor_unit((UNITS / "adjudge-worker@.service").read_text()))
    (units / "doctor-report@.service").write_text(_REPORT)
    (units / "doctor.target").write_text(_TARGET)
    (staging / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    with (staging / "etc/passwd").open("a") as users:
        users.write(f"adjudge:x:{_USER}:{_USER}::/var/lib/adjudge:/usr/sbin/nologin\n")
    with (staging / "etc/group").open("a") as groups:
        groups.write(f"adjudge:x:{_USER}:\n")


def doctor_unit(worker: str) -> str:
    """The worker's unit with the doctor as its command."""
    replaced = set(_REPLACED)
    if any(Path(sys.base_prefix).is_relative_to(home) for home in ("/root", "/home")):
        replaced.add("ProtectHome")
    service = worker.partition("[Service]\n")[2].partition("[Install]")[0].replace("%i", "1").replace("%H", "guest")
    kept = [line for line in service.splitlines() if line.partition("=")[0] not in replaced]
    python = Path(sys.prefix) / "bin" / Path(sys.executable).name
    text = "\n".join(line for line in kept if not re.match(r"\s*(#|$)", line))
    return f"{_HEAD}\n[Service]\n{text}\n{_COMMAND.format(python=python, repository=REPOSITORY)}"
