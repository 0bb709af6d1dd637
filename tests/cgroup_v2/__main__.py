"""``make test-cgroup2``: builds a disk, boots it, runs the sandbox tests and writes the result into the docs.

A third machine runs systemd, with the doctor in the unit of a worker.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from tests.cgroup_v2 import image, machine, systemd_unit
from tests.sandbox.programs import compile_all

PAGE = image.REPOSITORY / "docs/reference/sandbox-tests-cgroup-v2.md"
_PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs"}


def main() -> int:
    """Return 0 if the suite passed as root and as an unprivileged user, and the doctor in a systemd unit."""
    options = _options()
    _require_tools()
    legs = [options.leg] if options.leg else ["root", "user", "systemd"]
    with tempfile.TemporaryDirectory(prefix="adjudge-cgroup2-") as folder:
        here = Path(folder)
        image.build(here / "disk", here / "staging", compile_all(here / "programs"))
        with ThreadPoolExecutor(len(legs)) as pool:
            outcomes = list(pool.map(lambda leg: _run_leg(here, leg, options), legs))
    for leg in legs:
        sys.stdout.write(_log(options, leg).read_text())
    if all(outcome.finished for outcome in outcomes) and not options.leg and not options.args:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(outcomes, options.ways, datetime.now(UTC)))
        sys.stdout.write(f"written: {PAGE.relative_to(image.REPOSITORY)}\n")
    ended = [leg for outcome in outcomes for leg in outcome.legs]
    return 0 if len(ended) == len(legs) and all(leg.exit_code == 0 for leg in ended) else 1


def _run_leg(here: Path, leg: str, options: argparse.Namespace) -> machine.Outcome:
    """Boot a machine for one user, with a copy of the disk."""
    disk = here / f"disk-{leg}"
    subprocess.run(["cp", "--sparse=always", str(here / "disk"), str(disk)], check=True)
    emulated = machine.accelerator() == "tcg"
    settings = {"repository": str(image.REPOSITORY), "leg": leg, "ways": options.ways}
    settings["time_scale"] = options.time_scale or ("5" if emulated else "1")
    settings |= {"args": options.args.replace(" ", "+")} if options.args else {}
    return machine.boot(disk, machine.newest_kernel(), settings, _log(options, leg), 3600 if emulated else 900)


def _log(options: argparse.Namespace, leg: str) -> Path:
    folder = Path(options.logs)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"cgroup2-{leg}.log"


def page(outcomes: Sequence[machine.Outcome], ways: str, now: datetime) -> str:
    """Page of the docs with the last result."""
    first, ended = outcomes[0], [leg for outcome in outcomes for leg in outcome.legs]
    legs = [leg for leg in ended if leg.name != "systemd"]
    unit = next((leg for leg in ended if leg.name == "systemd"), None)
    rows = [f"| {leg.name} | {leg.passed} | {leg.failed} | {leg.summary} |" for leg in legs]
    who = {"root": "as root", "user": "as an unprivileged user with a delegated subtree"}
    return "\n".join(
        [
            "# Sandbox test results on cgroup v2",
            "",
            "Written by `make test-cgroup2`, which boots a Debian kernel in a virtual machine and runs `tests/sandbox`",
            f"in it, {' and then '.join(who.get(leg.name, leg.name) for leg in legs)}. Do not edit.",
            "",
            f"- Last run: {now:%Y-%m-%d %H:%M} UTC",
            f"- Kernel: {first.kernel}, accelerator {first.accelerator}",
            f"- Controllers: {first.controllers}",
            f"- Interfaces: {ways.replace(',', ' and ')}",
            "",
            "| user | passed | failed | pytest summary |",
            "|---|---|---|---|",
            *rows,
            "",
            *([_unit_result(unit), ""] if unit else []),
        ]
    )


def _unit_result(unit: machine.Leg) -> str:
    result = "passed" if unit.exit_code == 0 else "failed"
    return f"`adjudge doctor --container` in the systemd unit of a worker (`deploy/systemd`): {result}."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make test-cgroup2", description=__doc__)
    parser.add_argument("--leg", choices=("root", "user", "systemd"), help="one part only; the page is not written")
    parser.add_argument("--ways", default="agent,command", help="agent, command, or both with a comma (default)")
    parser.add_argument("--args", help="further arguments for pytest, split at spaces; the page is not written")
    parser.add_argument("--time-scale", help="factor on the suite's time limits (default 1 with KVM, 5 without)")
    parser.add_argument("--logs", default=str(image.REPOSITORY / ".cache"), help="directory of the console logs")
    return parser.parse_args()


def _require_tools() -> None:
    missing = [package for tool, package in _PACKAGES.items() if not shutil.which(tool)]
    if not list(Path("/boot").glob("vmlinuz-*")):
        missing.append("linux-image-cloud-amd64")
    if not Path(systemd_unit.INIT).exists():
        missing.append("systemd")
    if missing and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], check=True)
    elif missing:
        raise SystemExit(f"missing: {', '.join(missing)} (Debian package names); install them and run again")


sys.exit(main())
