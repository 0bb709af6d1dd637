"""Programs that want out: to the kernel, the host's files, its network, its other processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from adjudge.sandbox import Mount, RunVerdict
from tests.sandbox.host_state import Host
from tests.sandbox.sandbox_case import ROOMY, Box, breaches, held, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unharmed")]


NEIGHBOUR = """
import sys, time
for path in ("/work/s", "/tmp/s", "/dev/shm/s"):
    open(path, "w").write(sys.argv[1])
print("laid", flush=True)
time.sleep(1000)
"""


async def test_no_system_call_opens_a_door(box: Box) -> None:
    report = await box.run("kernel_interfaces", within=ROOMY)
    assert breaches(report) == []
    assert held(report) >= 70
    assert report.verdict is RunVerdict.OK


async def test_nobody_outside_can_be_reached(box: Box, host: Host) -> None:
    services = host.services
    report = await box.run(
        "network", str(services.port), str(services.path), services.abstract, _own_address(), within=ROOMY
    )
    assert breaches(report) == []
    assert held(report) == 15
    assert report.verdict is RunVerdict.OK


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which of our addresses would be used
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


async def test_nothing_of_the_host_can_be_read(box: Box, host: Host) -> None:
    paths = [host.secret, host.folder, host.state, Path(f"/proc/{os.getpid()}/environ"), Path.home(), Path.cwd()]
    report = await box.run("spy", *map(str, paths), within=ROOMY)
    assert breaches(report) == []
    assert held(report) >= 20
    assert report.verdict is RunVerdict.OK


async def test_nothing_of_the_host_can_be_written(box: Box, host: Host) -> None:
    report = await box.run("scribble", str(host.secret), str(host.folder), str(Path.cwd()), within=ROOMY)
    assert breaches(report) == []
    assert held(report) >= 200
    assert report.verdict is RunVerdict.OK


async def test_a_mounted_file_can_be_read_but_not_written(box: Box, host: Host) -> None:
    tests = Mount(host.secret.parent, "/data")
    report = await box.run("scribble", "/data/answer.txt", "/data", within=ROOMY, mounts=(tests,))
    assert breaches(report) == []
    seen = await box.run("scan_files.py", host.canary, within=ROOMY, mounts=(tests,))
    assert json.loads(seen.stdout)["found"] == ["/data/answer.txt"]


async def test_a_search_of_all_that_can_be_seen_finds_no_secret_and_no_place_to_write(box: Box, host: Host) -> None:
    report = await box.run("scan_files.py", host.canary, within=ROOMY)
    seen = json.loads(report.stdout)
    # Its own command line holds the canary, under its own pid, which the search leaves out.
    assert seen["found"] == []
    assert seen["writable"] == []
    assert host.canary not in json.dumps(seen["environment"])
    assert not set(seen["environment"]) & (set(os.environ) - {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"})


async def test_another_slots_files_cannot_be_seen(box: Box, host: Host) -> None:
    mark = f"{host.canary}-of-a-neighbour"
    read_end, write_end = os.pipe()
    neighbour = asyncio.create_task(box.sandbox.run(box.script(NEIGHBOUR, mark, within=ROOMY, stdout=write_end)))
    try:
        line = await asyncio.wait_for(asyncio.to_thread(os.read, read_end, 16), ms(120_000) / 1000)
        assert line == b"laid\n"
        report = await box.run("scan_files.py", mark, within=ROOMY)
        assert json.loads(report.stdout)["found"] == []
        assert not neighbour.done()
    finally:
        neighbour.cancel()
        await asyncio.gather(neighbour, return_exceptions=True)
        os.close(read_end)
        os.close(write_end)


async def test_a_set_uid_program_gives_nothing(box: Box, host: Host) -> None:
    planted = host.folder / "planted"
    planted.mkdir()
    try:
        program = planted / "setuid"
        shutil.copy(box.programs / "setuid", program)
        program.chmod(0o6755)
        report = await box.run("setuid", "/planted/setuid", within=ROOMY, mounts=(Mount(planted, "/planted"),))
        assert breaches(report) == []
        assert held(report) == 4
    finally:
        shutil.rmtree(planted)


async def test_no_core_is_dumped(box: Box, host: Host, tmp_path: Path) -> None:
    report = await box.run("crash", "core", collect=("core",), collect_to=tmp_path)
    assert report.verdict is RunVerdict.RE
    assert list(tmp_path.iterdir()) == []
    assert not list(Path.cwd().glob("core*"))


async def test_no_descriptor_is_inherited(box: Box) -> None:
    with Path("/etc/hostname").open("rb") as leaked:
        os.set_inheritable(leaked.fileno(), True)
        report = await box.run("fds")
    assert breaches(report) == []
    assert report.verdict is RunVerdict.OK


async def test_closed_stdio_is_the_programs_own_business(box: Box) -> None:
    report = await box.run("close_stdio")
    assert report.verdict is RunVerdict.OK
    assert report.stdout == b""


async def test_signals_reach_neither_the_launcher_nor_anybody_else(box: Box) -> None:
    report = await box.run("signals", within=limits(wall_ms=ms(500)))
    assert report.verdict in (RunVerdict.RE, RunVerdict.TLE)
    assert (await box.run("static_noop")).verdict is RunVerdict.OK
