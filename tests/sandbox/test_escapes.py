"""Escape attempts: to the kernel, to host files, to the network, to other processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from adjudge.sandbox import Mount, SandboxVerdict
from tests.sandbox.host_state import HostState
from tests.sandbox.sandbox_case import LARGE, SandboxCase, breaches, count_blocked, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]


OTHER_SLOT = """
import sys, time
for path in ("/work/s", "/tmp/s", "/dev/shm/s"):
    open(path, "w").write(sys.argv[1])
print("created", flush=True)
time.sleep(1000)
"""


async def test_dangerous_system_calls_are_blocked(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("kernel_interfaces", within=LARGE)
    assert breaches(report) == []
    assert count_blocked(report) >= 70
    assert report.verdict is SandboxVerdict.OK


async def test_network_is_unreachable(sandbox_case: SandboxCase, host: HostState) -> None:
    listeners = host.listeners
    report = await sandbox_case.run(
        "network", str(listeners.port), str(listeners.path), listeners.abstract, _own_address(), within=LARGE
    )
    assert breaches(report) == []
    assert count_blocked(report) == 15
    assert report.verdict is SandboxVerdict.OK


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; selects the local address
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


async def test_host_files_cannot_be_read(sandbox_case: SandboxCase, host: HostState) -> None:
    paths = [host.secret, host.folder, host.state, Path(f"/proc/{os.getpid()}/environ"), Path.home(), Path.cwd()]
    report = await sandbox_case.run("spy", *map(str, paths), within=LARGE)
    assert breaches(report) == []
    assert count_blocked(report) >= 20
    assert report.verdict is SandboxVerdict.OK


async def test_host_files_cannot_be_written(sandbox_case: SandboxCase, host: HostState) -> None:
    report = await sandbox_case.run("scribble", str(host.secret), str(host.folder), str(Path.cwd()), within=LARGE)
    assert breaches(report) == []
    assert count_blocked(report) >= 200
    assert report.verdict is SandboxVerdict.OK


async def test_read_only_mount_cannot_be_written(sandbox_case: SandboxCase, host: HostState) -> None:
    tests = Mount(host.secret.parent, "/data")
    report = await sandbox_case.run("scribble", "/data/answer.txt", "/data", within=LARGE, mounts=(tests,))
    assert breaches(report) == []
    seen = await sandbox_case.run("scan_files.py", host.canary, within=LARGE, mounts=(tests,))
    assert json.loads(seen.stdout)["found"] == ["/data/answer.txt"]


async def test_file_scan_finds_no_secret_and_no_writable_path(sandbox_case: SandboxCase, host: HostState) -> None:
    report = await sandbox_case.run("scan_files.py", host.canary, within=LARGE)
    seen = json.loads(report.stdout)
    # The canary is in the program's own command line, but the scan skips its own pid.
    assert seen["found"] == []
    assert seen["writable"] == []
    assert host.canary not in json.dumps(seen["environment"])
    assert not set(seen["environment"]) & (set(os.environ) - {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"})


async def test_files_of_other_slot_are_invisible(sandbox_case: SandboxCase, host: HostState) -> None:
    mark = f"{host.canary}-of-other-slot"
    read_end, write_end = os.pipe()
    other_run = asyncio.create_task(
        sandbox_case.sandbox.run(sandbox_case.script(OTHER_SLOT, mark, within=LARGE, stdout=write_end))
    )
    try:
        line = await asyncio.wait_for(asyncio.to_thread(os.read, read_end, 16), ms(120_000) / 1000)
        assert line == b"created\n"
        report = await sandbox_case.run("scan_files.py", mark, within=LARGE)
        assert json.loads(report.stdout)["found"] == []
        assert not other_run.done()
    finally:
        other_run.cancel()
        await asyncio.gather(other_run, return_exceptions=True)
        os.close(read_end)
        os.close(write_end)


async def test_set_uid_program_gains_no_privilege(sandbox_case: SandboxCase, host: HostState) -> None:
    planted = host.folder / "planted"
    planted.mkdir()
    try:
        program = planted / "setuid"
        shutil.copy(sandbox_case.programs / "setuid", program)
        program.chmod(0o6755)
        report = await sandbox_case.run("setuid", "/planted/setuid", within=LARGE, mounts=(Mount(planted, "/planted"),))
        assert breaches(report) == []
        assert count_blocked(report) == 4
    finally:
        shutil.rmtree(planted)


async def test_crash_writes_no_core_file(sandbox_case: SandboxCase, host: HostState, tmp_path: Path) -> None:
    report = await sandbox_case.run("crash", "core", collect=("core",), collect_to=tmp_path)
    assert report.verdict is SandboxVerdict.RE
    assert list(tmp_path.iterdir()) == []
    assert not list(Path.cwd().glob("core*"))


async def test_no_descriptor_is_inherited(sandbox_case: SandboxCase) -> None:
    with Path("/etc/hostname").open("rb") as leaked:
        os.set_inheritable(leaked.fileno(), True)
        report = await sandbox_case.run("fds")
    assert breaches(report) == []
    assert report.verdict is SandboxVerdict.OK


async def test_program_may_close_stdio(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("close_stdio")
    assert report.verdict is SandboxVerdict.OK
    assert report.stdout == b""


async def test_signals_do_not_reach_launcher(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run("signals", within=limits(wall_ms=ms(500)))
    assert report.verdict in (SandboxVerdict.RE, SandboxVerdict.TLE)
    assert (await sandbox_case.run("static_noop")).verdict is SandboxVerdict.OK
