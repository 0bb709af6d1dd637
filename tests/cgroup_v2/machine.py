"""Starts the virtual machine and parses its console output."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cgroup_v2 import systemd_unit


@dataclass(frozen=True, slots=True)
class Leg:
    """Result of the suite for one user, or of the doctor in a systemd unit."""

    name: str
    exit_code: int
    summary: str
    passed: int
    failed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Parsed console output of a machine."""

    kernel: str
    controllers: str
    accelerator: str
    legs: tuple[Leg, ...]
    finished: bool


def accelerator() -> str:
    """KVM if ``ADJUDGE_VM_ACCEL=kvm`` is set; else emulation, which is ten times slower but works everywhere.

    An accessible /dev/kvm is not sufficient: inside another virtual machine it often cannot run a whole kernel.
    """
    return "kvm" if os.environ.get("ADJUDGE_VM_ACCEL") == "kvm" else "tcg"


def newest_kernel() -> Path:
    """The newest installed kernel image."""
    kernels = sorted(
        Path("/boot").glob("vmlinuz-*"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)]
    )
    if not kernels:
        raise FileNotFoundError("no /boot/vmlinuz-*: install a kernel package, on Debian linux-image-cloud-amd64")
    return kernels[-1]


def boot(image: Path, kernel: Path, settings: dict[str, str], log: Path, deadline_s: float) -> Outcome:
    """Run the machine until it powers off, logging its console; kill it at the deadline."""
    accel = accelerator()
    init = ["init=/sbin/adjudge-init"]
    if settings["leg"] == "systemd":
        init = [f"init={systemd_unit.INIT}", "systemd.unit=doctor.target", "systemd.log_target=console"]
    words = ["console=ttyS0", "quiet", "loglevel=1", "panic=-1", "root=/dev/nvme0n1", "rw", *init]
    words += [f"adjudge.{name}={value}" for name, value in settings.items()]
    argv = ["qemu-system-x86_64", "-accel", accel, "-cpu", "host" if accel == "kvm" else "max"]
    argv += ["-smp", "2", "-m", "3072", "-nographic", "-no-reboot", "-nic", "none", "-kernel", str(kernel)]
    argv += ["-drive", f"file={image},format=raw,if=none,id=disk", "-device", "nvme,drive=disk,serial=disk"]
    argv += ["-append", " ".join(words)]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    ) as machine:
        lines = list(_console(machine, log, time.monotonic() + deadline_s))
    return _read(lines, accel)


def _console(machine: subprocess.Popen[str], log: Path, deadline: float) -> Iterator[str]:
    if machine.stdout is None:
        raise RuntimeError("the machine has no console")
    with log.open("w") as copy:
        for line in machine.stdout:
            copy.write(line)
            copy.flush()
            yield line.rstrip()
            if time.monotonic() > deadline:
                machine.kill()
                return


def _read(lines: list[str], accel: str) -> Outcome:
    facts = {"kernel": "unknown", "controllers": ""}
    legs: list[Leg] = []
    for number, line in enumerate(lines):
        word, _, rest = line.partition(" ")
        if word in facts:
            facts[word] = rest
        ended = re.fullmatch(r">>>leg (\w+) (-?\d+)", line)
        if ended:
            summary = next(
                (text for text in reversed(lines[:number]) if re.search(r"\d+ (passed|failed|error)", text)), ""
            )
            counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", summary)}
            failed = counts.get("failed", 0) + counts.get("error", 0)
            legs.append(Leg(ended[1], int(ended[2]), summary.strip("= "), counts.get("passed", 0), failed))
    return Outcome(facts["kernel"], facts["controllers"], accel, tuple(legs), "<<<end" in lines)
