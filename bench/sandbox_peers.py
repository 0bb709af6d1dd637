"""Other sandboxes, each run the way its documentation says, as one process per run.

What can be installed is installed: Debian packages as root, DMOJ by pip. One that cannot be had, or does not run here,
is a row with its reason in its own words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.peers import install, install_system, last_line, python_of, refused

Run = Callable[[tuple[str, ...], Path | None], None]
"""Runs a program, given where it reads from, and waits for its end."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A sandbox to be measured against."""

    name: str
    run: Run | None
    why_not: str = ""


def spawn(argv: tuple[str, ...], stdin: Path | None) -> None:
    """The baseline: posix_spawn and wait."""
    source = str(stdin) if stdin else "/dev/null"
    actions = [(os.POSIX_SPAWN_OPEN, 0, source, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawnp(argv[0], argv, {"PATH": "/usr/bin:/bin:/usr/sbin"}, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(f"{argv} ended with status {status}")


def find_peers(probe: Path) -> list[Peer]:
    """Install and try every peer on ``probe``, a program that does nothing."""
    if why := refused():
        return [Peer(name, None, why) for name in ("bubblewrap", "isolate", "nsjail", "go-judge", "DMOJ")]
    return [_tried(peer, probe) for peer in (_bubblewrap(), _isolate(), _nsjail(), _go_judge(), _dmoj())]


def _missing(binary: str, package: str) -> str:
    """Install the package that brings a binary; the reason where it stays missing."""
    if shutil.which(binary):
        return ""
    why = install_system(package)
    return "" if shutil.which(binary) else why or f"the package {package} has no {binary}"


def _bubblewrap() -> Peer:
    if why := _missing("bwrap", "bubblewrap"):
        return Peer("bubblewrap", None, why)
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
    if why := _missing("isolate", "isolate"):
        return Peer("isolate", None, why)

    def run(argv: tuple[str, ...], stdin: Path | None) -> None:
        spawn(("isolate", "--silent", "--init"), None)
        folder = str(Path(argv[0]).parent)
        spawn(("isolate", "--silent", f"--dir={folder}={folder}", "--run", "--", *argv), stdin)
        spawn(("isolate", "--silent", "--cleanup"), None)

    return Peer("isolate", run)


def _nsjail() -> Peer:
    if not shutil.which("nsjail"):
        return Peer("nsjail", None, "not packaged for this system; put nsjail on the PATH")

    def run(argv: tuple[str, ...], stdin: Path | None) -> None:
        spawn(("nsjail", "-Mo", "-Q", "-R", "/usr", "-R", "/lib", "-R", "/lib64", "-R", argv[0], "--", *argv), stdin)

    return Peer("nsjail", run)


def _go_judge() -> Peer:
    return Peer("go-judge", None, "not packaged for this system; it is a server of its own")


def _dmoj() -> Peer:
    if why := install("DMOJ", ("dmoj",), needs="libseccomp-dev"):
        return Peer("DMOJ", None, why)
    try:
        driver = _DmojDriver(python_of("DMOJ"))
    except (OSError, RuntimeError) as error:
        return Peer("DMOJ", None, f"its executor does not start here: {error}")
    return Peer("DMOJ", driver.run)


class _DmojDriver:
    """A process of DMOJ's own environment that runs commands and answers with a line."""

    def __init__(self, python: Path) -> None:
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # as long as the process lives
        self._process = subprocess.Popen(
            [str(python), "-u", str(Path(__file__).with_name("sandbox_dmoj_driver.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._expect("ready")

    def run(self, argv: tuple[str, ...], stdin: Path | None) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the driver has no pipes")
        self._process.stdin.write("\t".join((str(stdin or "/dev/null"), *argv)) + "\n")
        self._process.stdin.flush()
        self._expect("done")

    def _expect(self, word: str) -> None:
        """Read the driver's line; anything but ``word`` is a failure, reported with its standard error."""
        line = self._process.stdout.readline().strip() if self._process.stdout else ""
        if line != word:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10 if not line else 0)
            self._process.kill()
            self._process.communicate()
            with self._errors:
                self._errors.seek(0)
                words = last_line(self._errors.read())
            raise RuntimeError(f"{line or f'it ended with {self._process.returncode}'}: {words}")


def _tried(peer: Peer, probe: Path) -> Peer:
    """A peer takes part when it can run a program here."""
    if peer.run is None:
        return peer
    try:
        peer.run((str(probe),), None)
    except (OSError, RuntimeError) as error:
        return Peer(peer.name, None, f"installed, but does not run here: {error}")
    return peer


def timed(run: Run, argv: tuple[str, ...], stdin: Path | None) -> float:
    """One run, in milliseconds."""
    started = time.perf_counter()
    run(argv, stdin)
    return (time.perf_counter() - started) * 1000
