"""State of the host that a run must not change: processes, mounts, files, listeners and secrets."""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LAUNCHERS: Final = frozenset({"adjudge-box", "adjudge-agent"})
"""Process names of keepers and agents."""
PREPARED_CHILD: Final = "adjudge-next"
"""Name of a child that an agent has prepared for its next run."""
_TRACE_KEY: Final = str(0x5EED)
_SLOT_UIDS: Final = 1_900_000_000
_PR_SET_CHILD_SUBREAPER: Final = 36


def become_subreaper() -> None:
    """Become the parent of orphaned descendants, so that leftover processes are found below this process."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Process:
    """One process, from /proc."""

    pid: int
    parent: int
    name: str
    state: str


def processes() -> dict[int, Process]:
    """All visible processes."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  # called several times per test; Path takes twice as long
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", errors="replace") as file:  # noqa: PTH123  # as above
                head, _, rest = file.read().rpartition(")")
                state, parent = rest.split(maxsplit=2)[:2]
                found[int(name)] = Process(int(name), int(parent), head.partition("(")[2], state)
    return found


EXCLUDED_CHILDREN: Final[set[int]] = set()
"""Children that are ignored with their descendants: the suite as an unprivileged user."""


def descendants(root: int | None = None) -> dict[int, Process]:
    """All live descendants of ``root`` (default: this process), without excluded ones."""
    everyone = processes()
    below: dict[int, Process] = {}
    frontier = [root or os.getpid()]
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        if process.pid not in EXCLUDED_CHILDREN:
            children.setdefault(process.parent, []).append(process.pid)
    while frontier:
        for pid in children.get(frontier.pop(), []):
            below[pid] = everyone[pid]
            frontier.append(pid)
    return {pid: process for pid, process in below.items() if process.state != "Z"}


def mounts() -> list[str]:
    """Mounts of this process, without fields that change by themselves."""
    return sorted(line.split(" - ")[0] for line in Path("/proc/self/mountinfo").read_text().splitlines())


def ipc_objects() -> set[str]:
    """System V objects on the host that were created by a sandboxed program, recognized by key or by user.

    Other programs of the same user, such as PostgreSQL, have such objects as well. Their creator still runs and is not
    one of our descendants.
    """
    users, below = {os.getuid()} - {0}, descendants()
    found = set()
    for kind in ("shm", "sem", "msg"):
        lines: list[str] = []
        with suppress(OSError):
            lines = Path("/proc/sysvipc", kind).read_text().splitlines()
        head = lines[0].split() if lines else []
        for line in lines[1:]:
            row = dict(zip(head, line.split(), strict=False))
            owners = {int(row[column]) for column in ("uid", "cuid", "gid", "cgid")}
            is_ours = owners & users or max(owners) >= _SLOT_UIDS
            creator = int(row.get("cpid", 0))
            is_known = creator not in below and Path(f"/proc/{creator}").exists()
            if row["key"] == _TRACE_KEY or (is_ours and not (creator and is_known)):
                found.add(f"{kind} {row['key']} {line.split()[1]}")
    return found


def cgroups_of(state: Path) -> list[str]:
    """Cgroups of all sandboxes with a state directory at or below this one, in all hierarchies."""
    folders = [state, *(path for path in state.rglob("*") if path.is_dir())] if state.exists() else []
    prefixes = tuple(f"adjudge-{folder.stat().st_ino:x}-" for folder in folders)
    found = []
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found += [f"{folder}/{name}" for name in names if prefixes and name.startswith(prefixes)]
    return sorted(found)


def unexpected_processes(among: dict[int, Process]) -> list[Process]:
    """Processes that are neither launchers nor the one prepared child of an agent."""
    waiting = [
        process for process in among.values() if process.name == PREPARED_CHILD and _is_agent(among, process.parent)
    ]
    agents = [process.parent for process in waiting]
    ours = {process.pid for process in waiting if agents.count(process.parent) == 1}
    return [process for process in among.values() if process.name not in LAUNCHERS and process.pid not in ours]


def _is_agent(among: dict[int, Process], pid: int) -> bool:
    return pid in among and among[pid].name == "adjudge-agent"


def new_processes(had: dict[int, Process], now: dict[int, Process]) -> list[Process]:
    """Unexpected processes that did not exist before.

    Descendants of processes that existed before are ignored: a database server of the tests may start processes at any
    time. A prepared child that became a program counts as new, although its pid existed.
    """
    existed = {pid for pid, process in had.items() if process.name not in LAUNCHERS and process.name != PREPARED_CHILD}

    def has_existed(pid: int) -> bool:
        return pid in existed or (pid in now and has_existed(now[pid].parent))

    return [process for process in unexpected_processes(now) if not has_existed(process.pid)]


@dataclass
class HostListeners:
    """Listeners on the host that record connections."""

    folder: Path
    port: int = 0
    reached: list[str] = field(default_factory=list)
    abstract: str = field(default_factory=lambda: f"adjudge-canary-{secrets.token_hex(8)}")
    _listeners: list[socket.socket] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """Path of a socket that every user may connect to."""
        return self.folder / "service.sock"

    def start(self) -> None:
        """Listen on a loopback port, on a path and on an abstract name."""
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        named = socket.socket(socket.AF_UNIX)
        named.bind(str(self.path))
        self.path.chmod(0o777)
        hidden = socket.socket(socket.AF_UNIX)
        hidden.bind(f"\0{self.abstract}")
        for name, listener in (("tcp", tcp), ("path", named), ("abstract", hidden)):
            listener.listen()
            self._listeners.append(listener)
            threading.Thread(target=self._serve, args=(name, listener), daemon=True).start()

    def _serve(self, name: str, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(60)
                    if connection.recv(16) != b"check":
                        self.reached.append(name)
                    connection.sendall(b"well")

    def check(self) -> None:
        """Assert that there was no unexpected connection, and that the listeners still work."""
        for family, address in ((socket.AF_INET, ("127.0.0.1", self.port)), (socket.AF_UNIX, str(self.path))):
            with socket.socket(family) as client:
                client.settimeout(60)
                client.connect(address)
                client.sendall(b"check")
                assert client.recv(16) == b"well"
        assert self.reached == []

    def stop(self) -> None:
        """Close the listeners."""
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@dataclass
class HostState:
    """The host with canaries: secrets that every user may read, and files that every user may write."""

    folder: Path
    state: Path
    canary: str = field(default_factory=lambda: f"canary{secrets.token_hex(12)}")

    def __post_init__(self) -> None:
        self.folder.chmod(0o777)
        self.secret = self.folder / "test-data" / "answer.txt"
        self.secret.parent.mkdir()
        self.secret.parent.chmod(0o777)
        self.secret.write_text(self.canary)
        self.secret.chmod(0o666)
        os.environ["ADJUDGE_CANARY"] = self.canary
        self.listeners = HostListeners(self.folder)
        self.listeners.start()
        self.bystander = subprocess.Popen(["/bin/sleep", "100000"])

    def close(self) -> None:
        """Remove the canaries."""
        self.listeners.stop()
        self.bystander.kill()
        self.bystander.wait()
        del os.environ["ADJUDGE_CANARY"]

    def files(self) -> list[tuple[str, int, int]]:
        """Files in the canary directory, and slots in use."""
        seen = [(str(path), path.lstat().st_size, path.lstat().st_mode) for path in sorted(self.folder.rglob("*"))]
        return seen + self.slots_in_use()

    def _wait_for_cleanup(self, launchers: int, cgroups: list[str], files: list[tuple[str, int, int]]) -> None:
        """Wait until launcher, cgroup and lock of a finished box are gone; they may briefly outlive its report."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            _count_launchers(descendants()) > launchers or cgroups_of(self.state) != cgroups or self.files() != files
        ):
            time.sleep(0.01)
        assert _count_launchers(descendants()) <= launchers
        assert cgroups_of(self.state) == cgroups
        assert self.files() == files

    def slots_in_use(self) -> list[tuple[str, int, int]]:
        """Files in the state directory, without the empty files of free slots."""
        files = [path for path in sorted(self.state.rglob("*")) if path.is_file()]
        return [(str(path), path.stat().st_size, 0) for path in files if path.stat().st_size]

    @contextmanager
    def assert_unchanged(self) -> Iterator[None]:
        """Assert that the body changes nothing on the host."""
        had, mounted, files, ipc = descendants(), mounts(), self.files(), ipc_objects()
        cgroups = cgroups_of(self.state)
        yield
        left = new_processes(had, descendants())
        assert not left, f"left running: {left[:5]}, {len(left)} in all"
        assert mounts() == mounted
        self._wait_for_cleanup(_count_launchers(had), cgroups, files)
        assert self.secret.read_text() == self.canary
        assert ipc_objects() <= ipc
        assert self.bystander.poll() is None
        self.listeners.check()


def _count_launchers(among: dict[int, Process]) -> int:
    return sum(process.name in LAUNCHERS for process in among.values())
