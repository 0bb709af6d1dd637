"""Other sandboxes, each run the way its documentation says, as one process per run. A missing one says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[tuple[str, ...], Path | None], None]
"""Runs a program, given where it reads from, and waits for its end."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A sandbox to be measured against."""

    name: str
    run: Run | None
    why_not: str = ""


def spawn(argv: tuple[str, ...], stdin: Path | None) -> None:
    """The floor: posix_spawn and wait."""
    source = str(stdin) if stdin else "/dev/null"
    actions = [(os.POSIX_SPAWN_OPEN, 0, source, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawnp(argv[0], argv, {"PATH": "/usr/bin:/bin:/usr/sbin"}, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(f"{argv} ended with status {status}")


def find_peers() -> list[Peer]:
    """Look for every peer."""
    return [_bubblewrap(), _isolate(), _nsjail(), _go_judge(), _dmoj()]


def _bubblewrap() -> Peer:
    if not shutil.which("bwrap"):
        return Peer("bubblewrap", None, "install the package bubblewrap")
    head: tuple[str, ...] = (
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
    )
    head += ("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev")
    head += ("--tmpfs", "/tmp", "--tmpfs", "/work", "--chdir", "/work")

    def run(argv: tuple[str, ...], stdin: Path | None) -> None:
        spawn((*head, "--ro-bind", argv[0], argv[0], "--", *argv), stdin)

    return Peer("bubblewrap", run)


def _isolate() -> Peer:
    if not shutil.which("isolate"):
        return Peer("isolate", None, "install the package isolate")

    def run(argv: tuple[str, ...], stdin: Path | None) -> None:
        spawn(("isolate", "--silent", "--init"), None)
        folder = str(Path(argv[0]).parent)
        spawn(("isolate", "--silent", f"--dir={folder}={folder}", "--run", "--", *argv), stdin)
        spawn(("isolate", "--silent", "--cleanup"), None)

    return _tried("isolate", run)


def _nsjail() -> Peer:
    if not shutil.which("nsjail"):
        return Peer("nsjail", None, "not packaged for this system; put nsjail on the PATH")

    def run(argv: tuple[str, ...], stdin: Path | None) -> None:
        spawn(("nsjail", "-Mo", "-Q", "-R", "/usr", "-R", "/lib", "-R", "/lib64", "-R", argv[0], "--", *argv), stdin)

    return _tried("nsjail", run)


def _go_judge() -> Peer:
    return Peer("go-judge", None, "not packaged for this system; it is a server of its own")


def _dmoj() -> Peer:
    python = Path(".cache/peers/dmoj/bin/python")
    if not python.exists():
        return Peer("DMOJ", None, "make a virtual environment .cache/peers/dmoj and install dmoj into it")
    try:
        driver = _DmojDriver(python)
    except (OSError, RuntimeError) as error:
        return Peer("DMOJ", None, f"its executor does not start here: {error}")
    return _tried("DMOJ", driver.run)


class _DmojDriver:
    """A process of DMOJ's own environment that runs what it is told and answers with a line."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-u", str(Path(__file__).with_name("sandbox_dmoj_driver.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if self._process.stdout is None or self._process.stdout.readline().strip() != "ready":
            self._process.kill()
            raise RuntimeError("the driver said nothing")

    def run(self, argv: tuple[str, ...], stdin: Path | None) -> None:
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the driver has no pipes")
        process.stdin.write("\t".join((str(stdin or "/dev/null"), *argv)) + "\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "done":
            raise RuntimeError("the driver failed")


def _tried(name: str, run: Run) -> Peer:
    """A peer counts as installed when it can run a program here."""
    try:
        run(("/bin/true",), None)
    except (OSError, RuntimeError) as error:
        return Peer(name, None, f"installed, but does not run here: {error}")
    return Peer(name, run)


def timed(run: Run, argv: tuple[str, ...], stdin: Path | None) -> float:
    """One run, in milliseconds."""
    started = time.perf_counter()
    run(argv, stdin)
    return (time.perf_counter() - started) * 1000
