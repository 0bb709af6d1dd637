"""Covert channels: two sandboxes try to pass 64 bits by locks, watches, caches, names or counters."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import pytest

from adjudge.sandbox import Mount, SandboxRunReport, SandboxRunSpec, SandboxVerdict
from tests.sandbox.host_state import HostState
from tests.sandbox.sandbox_case import LARGE, PYTHON, SandboxCase, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

CHANNELS: Final = (
    "flock",
    "posix_lock",
    "ofd_lock",
    "write_hint",
    "mincore",
    "nowait",
    "cachestat",
    "semaphore",
    "message_queue",
    "segment",
    "posix_queue",
    "posix_shm",
    "abstract_socket",
    "inotify",
)
MESSAGE: Final = 0xC0DEFACEDEADBEEF
OPPOSITE: Final = MESSAGE ^ (1 << 64) - 1
READY: Final = b"ready\n"
PAGE_CACHE: Final = frozenset({"mincore", "nowait", "cachestat"})
"""Channels that need pages which can be evicted from the page cache."""
ATTEMPTS: Final = 20
IS_UNPRIVILEGED_RUN: Final = "ADJUDGE_TEST_PROGRAMS" in os.environ
"""Whether this is the concurrent run as an unprivileged user, which would disturb the control tests."""


def _bits(message: int) -> str:
    return "".join("1" if message >> i & 1 else "0" for i in range(64))


@contextmanager
def _pipes() -> Iterator[tuple[int, int, int, int]]:
    """A pipe to a program and a pipe from it."""
    ends = [*os.pipe(), *os.pipe()]
    try:
        yield ends[0], ends[1], ends[2], ends[3]
    finally:
        for fd in ends:
            os.close(fd)


@asynccontextmanager
async def _run_beside(
    sandbox_case: SandboxCase, spec_of: SandboxRunSpec, stdin: int, output: int
) -> AsyncIterator[asyncio.Task[SandboxRunReport]]:
    """Run a program in one slot, from when it is ready until the end of the block."""
    task = asyncio.create_task(sandbox_case.sandbox.run(spec_of))
    try:
        assert await asyncio.wait_for(asyncio.to_thread(os.read, output, 64), ms(120_000) / 1000) == READY
        yield task
        os.write(stdin, b"\n")
        report = await task
        assert report.verdict is SandboxVerdict.OK, report
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _received(sandbox_case: SandboxCase, channel: str, message: int) -> str:
    with _pipes() as (stdin, to_stdin, output, stdout):
        sender = sandbox_case.spec("covert", "send", channel, f"{message:x}", within=LARGE, stdin=stdin, stdout=stdout)
        async with _run_beside(sandbox_case, sender, to_stdin, output) as running:
            report = await sandbox_case.run("covert", "receive", channel, within=LARGE)
            assert not running.done()
    assert report.verdict is SandboxVerdict.OK
    return report.stdout.decode().strip()


@pytest.mark.parametrize("channel", CHANNELS)
async def test_channel_does_not_pass_message_between_sandboxes(sandbox_case: SandboxCase, channel: str) -> None:
    received = await _received(sandbox_case, channel, MESSAGE)
    assert len(received) == 64
    assert received == await _received(sandbox_case, channel, OPPOSITE)


@pytest.mark.skipif(IS_UNPRIVILEGED_RUN, reason="tested by the run as root, which this would disturb")
@pytest.mark.parametrize("channel", CHANNELS)
async def test_channel_passes_message_outside_sandbox(program_folder: Path, channel: str) -> None:
    """Control: the programs work without the sandbox, so the test above can fail."""
    received = ""
    for _ in range(ATTEMPTS):  # other processes may read the same files
        received = await asyncio.to_thread(_received_outside, program_folder / "covert", channel)
        if received == _bits(MESSAGE) or "?" in received or _is_owner_only(channel):
            return
    if channel in PAGE_CACHE and received == "1" * 64:
        pytest.skip("the file system of /usr keeps all pages in memory, as tmpfs does")
    assert received == _bits(MESSAGE)


def _received_outside(program: Path, channel: str) -> str:
    argv = [str(program), "send", channel, f"{MESSAGE:x}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == READY
        return subprocess.run([program, "receive", channel], capture_output=True, check=True).stdout.decode().strip()


def _is_owner_only(channel: str) -> bool:
    """Whether the kernel replies only to the owner of the files, which an unprivileged user is not."""
    return os.getuid() != 0 and channel in {"write_hint", "mincore"}


BUSY: Final = """
import os
held = [bytearray(1 << 20) for _ in range(32)]
for _ in range(20):
    open("/usr/bin/env", "rb").read()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""


async def test_host_counters_are_constant_in_sandbox(sandbox_case: SandboxCase) -> None:
    with _pipes() as (stdin, to_stdin, output, stdout):
        watcher = sandbox_case.spec("counters", within=LARGE, stdin=stdin, stdout=stdout)
        async with _run_beside(sandbox_case, watcher, to_stdin, output):
            assert (await sandbox_case.sandbox.run(sandbox_case.script(BUSY))).verdict is SandboxVerdict.OK
        seen = os.read(output, 65_536).decode().split("\n")
    assert [line for line in seen if line.startswith("changed")] == []
    assert seen[-2].startswith("read ")


async def test_host_counters_change_outside_sandbox(program_folder: Path) -> None:
    """Control: the program sees counters that change, so the test above can fail."""
    wanted = {b"changed sysinfo", b"changed /proc/stat"}
    for _ in range(ATTEMPTS):  # a process of the host that ends meanwhile may hide the one started here
        wanted -= await asyncio.to_thread(_changed_outside, program_folder / "counters")
        if not wanted:
            return
    assert wanted == set()


def _changed_outside(program: Path) -> set[bytes]:
    """Lines of the program while another process is started: sysinfo counts the processes of the host."""
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == READY
        with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE):
            return set(watcher.communicate(b"\n")[0].splitlines())


async def test_reading_mounted_file_keeps_access_time(sandbox_case: SandboxCase, host: HostState) -> None:
    shared = host.folder / "shared"
    shared.mkdir()
    try:
        file = shared / "file"
        file.write_text("read me")
        os.utime(file, (1, 2))  # accessed before modified: the next read would update the access time
        report = await sandbox_case.sandbox.run(
            sandbox_case.script("print(open('/shared/file').read())", mounts=(Mount(shared, "/shared"),))
        )
        assert report.stdout == b"read me\n"
        assert file.stat().st_atime == 1
    finally:
        file.unlink()
        shared.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="all sandboxes of an unprivileged user have the same uid")
async def test_slots_have_different_uids(sandbox_case: SandboxCase) -> None:
    both = [
        sandbox_case.sandbox.run(sandbox_case.script("import os, time; print(os.getuid()); time.sleep(0.2)"))
        for _ in range(2)
    ]
    users = [report.stdout for report in await asyncio.gather(*both)]
    assert users[0] != users[1]


OWN_LOCKS: Final = """
import fcntl, multiprocessing, os, sqlite3, tempfile
with sqlite3.connect("/work/data.db") as data:
    data.execute("create table t (x)")
    data.executemany("insert into t values (?)", [(i,) for i in range(100)])
    data.commit()
print(sqlite3.connect("/work/data.db").execute("select sum(x) from t").fetchone()[0])
with open("/tmp/lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(file, fcntl.LOCK_UN)
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
with multiprocessing.Lock():
    print(os.sysconf("SC_PHYS_PAGES") > 1000, os.cpu_count() > 0, len(os.getloadavg()))
print(os.isatty(0), len(os.listdir("/proc/self/fd")) > 3, "MemTotal" in open("/proc/meminfo").read())
"""


async def test_file_locks_and_sysconf_work_in_sandbox(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.sandbox.run(SandboxRunSpec(argv=(PYTHON, "-I", "-c", OWN_LOCKS), limits=LARGE))
    assert report.stderr == b""
    assert report.stdout.split() == [b"4950", b"True", b"True", b"3", b"False", b"True", b"True"]
