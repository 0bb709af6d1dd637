"""Runs a command as an unprivileged user from a test that runs as root.

The interpreter and the checkout may be below directories that only root may enter, such as a home with mode 0700.
Therefore the command gets its own mount namespace, in which such a directory is replaced by an empty one with only the
needed paths mounted below it. The mounts of the host do not change.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

UID = 61_000
"""A uid without an account."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 0x20000, 4096, 16384, 1 << 18, 2, 4


def _check(result: int, step: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{step}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    done = _LIBC.mount(source.encode(), str(target).encode(), kind.encode(), flags, options.encode())
    _check(done, f"mount {source} on {target}")


def _first_private_folder(path: Path) -> Path | None:
    """The topmost directory of ``path`` that other users may not enter."""
    return next((folder for folder in reversed((path, *path.parents)) if not folder.stat().st_mode & 0o001), None)


def _make_reachable(paths: Iterable[Path], staging: Path) -> None:
    """Make every path accessible to other users, in a new mount namespace."""
    _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
    _mount("none", Path("/"), "", _MS_REC | _MS_PRIVATE)
    unreachable = {path: private_folder for path in paths if (private_folder := _first_private_folder(path))}
    for number, path in enumerate(unreachable):
        (staging / str(number)).mkdir()
        _mount(str(path), staging / str(number), "", _MS_BIND | _MS_REC)
    for private_folder in sorted(set(unreachable.values())):
        _mount("none", private_folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
    for number, path in enumerate(unreachable):
        path.mkdir(parents=True, exist_ok=True)
        _mount(str(staging / str(number)), path, "", _MS_BIND | _MS_REC)


@contextmanager
def running(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], output: IO[bytes], needed: Iterable[Path] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``argv`` as :data:`UID` in ``folder`` with a temporary HOME; kill it at the end."""
    paths = sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix), folder, *needed})
    with tempfile.TemporaryDirectory(prefix="adjudge-user-", dir="/tmp") as home:
        staging = Path(home) / "staging"
        staging.mkdir()
        Path(home).chmod(0o755)
        for name in ("home", "tmp"):
            (Path(home) / name).mkdir()
            os.chown(Path(home) / name, UID, UID)

        def enter() -> None:
            _make_reachable(paths, staging)
            os.setgroups([])
            os.setgid(UID)
            os.setuid(UID)
            os.umask(0o022)

        inherited = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "USER": "adjudge-test", "LANG": "C.UTF-8"}
        inherited |= {"HOME": f"{home}/home", "TMPDIR": f"{home}/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            list(argv),
            cwd=folder,
            env=inherited | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=enter,  # noqa: PLW1509  # no other thread of the test process holds a lock here
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
