"""``make test-cgroup2``: build the disk, boot it, run the hostile suite in it, write the result into the docs."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.cgroup2 import image, machine
from tests.sandbox.programs import compile_all

PAGE = image.REPOSITORY / "docs/reference/sandbox-cgroup2.md"
_PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs"}


def main() -> int:
    """Return 0 when both legs ran and nothing failed."""
    options = _options()
    _require_tools()
    with tempfile.TemporaryDirectory(prefix="adjudge-cgroup2-") as folder:
        here = Path(folder)
        programs = compile_all(here / "programs")
        image.build(here / "disk", here / "staging", programs)
        emulated = machine.accelerator() == "tcg"
        settings = {
            "repository": str(image.REPOSITORY),
            "time_scale": options.time_scale or ("5" if emulated else "1"),
        }
        settings |= {"ways": options.ways}
        settings |= {"leg": options.leg} if options.leg else {}
        settings |= {"args": options.args.replace(" ", "+")} if options.args else {}
        log = Path(options.log)
        log.parent.mkdir(parents=True, exist_ok=True)
        outcome = machine.boot(here / "disk", machine.newest_kernel(), settings, log, 3600 if emulated else 900)
    sys.stdout.write(log.read_text())
    complete = outcome.finished and not options.leg and not options.args
    if complete:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(outcome, options.ways, datetime.now(UTC)))
        sys.stdout.write(f"written: {PAGE.relative_to(image.REPOSITORY)}\n")
    good = outcome.finished and bool(outcome.legs) and all(leg.exit_code == 0 for leg in outcome.legs)
    return 0 if good else 1


def page(outcome: machine.Outcome, ways: str, now: datetime) -> str:
    """The page of the docs that holds the last result."""
    rows = [f"| {leg.name} | {leg.passed} | {leg.failed} | {leg.summary} |" for leg in outcome.legs]
    who = {"root": "as root", "user": "as an ordinary user with a delegated subtree"}
    return "\n".join(
        [
            "# The hostile suite on cgroup v2",
            "",
            "Written by `make test-cgroup2`, which boots a Debian kernel in a virtual machine and runs `tests/sandbox`",
            f"in it, {' and then '.join(who.get(leg.name, leg.name) for leg in outcome.legs)}. Do not edit.",
            "",
            f"- Last run: {now:%Y-%m-%d %H:%M} UTC",
            f"- Kernel: {outcome.kernel}, accelerator {outcome.accelerator}",
            f"- Controllers: {outcome.controllers}",
            f"- Ways in: {ways.replace(',', ' and ')}",
            "",
            "| leg | passed | failed | pytest's summary |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make test-cgroup2", description=__doc__)
    parser.add_argument("--leg", choices=("root", "user"), help="run one leg only; the page is not written")
    parser.add_argument("--ways", default="agent,command", help="agent, command, or both with a comma (default)")
    parser.add_argument("--args", help="further arguments for pytest, split at spaces; the page is not written")
    parser.add_argument("--time-scale", help="factor on the suite's time limits (default 1 with KVM, 5 without)")
    parser.add_argument("--log", default=str(image.REPOSITORY / ".cache/cgroup2.log"), help="where the console is kept")
    return parser.parse_args()


def _require_tools() -> None:
    missing = [package for tool, package in _PACKAGES.items() if not shutil.which(tool)]
    if not list(Path("/boot").glob("vmlinuz-*")):
        missing.append("linux-image-cloud-amd64")
    if missing and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], check=True)
    elif missing:
        raise SystemExit(f"missing: {', '.join(missing)} (Debian's package names); install them and try again")


sys.exit(main())
