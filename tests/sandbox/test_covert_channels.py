"""Two boxes beside each other that want to pass 64 bits: by locks, watches, caches, names, counters."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import pytest

from adjudge.sandbox import Mount, RunReport, RunSpec, RunVerdict
from tests.sandbox.host_state import Host
from tests.sandbox.sandbox_case import PYTHON, ROOMY, Box, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unharmed")]

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
"""Channels that need pages which can be dropped from memory."""
TRIES: Final = 20
IS_LEG: Final = "ADJUDGE_TEST_PROGRAMS" in os.environ
"""Whether this is the second leg of the suite, which runs beside the first and would be heard by its controls."""


def _bits(message: int) -> str:
    return "".join("1" if message >> i & 1 else "0" for i in range(64))


@contextmanager
def _pipes() -> Iterator[tuple[int, int, int, int]]:
    """A pipe into a program and one out of it."""
    ends = [*os.pipe(), *os.pipe()]
    try:
        yield ends[0], ends[1], ends[2], ends[3]
    finally:
        for fd in ends:
            os.close(fd)


@asynccontextmanager
async def _beside(box: Box, spec_of: RunSpec, stdin: int, output: int) -> AsyncIterator[asyncio.Task[RunReport]]:
    """Run a program in one slot until it has said that it is ready, and until the end of the block."""
    task = asyncio.create_task(box.sandbox.run(spec_of))
    try:
        assert await asyncio.wait_for(asyncio.to_thread(os.read, output, 64), ms(120_000) / 1000) == READY
        yield task
        os.write(stdin, b"\n")
        report = await task
        assert report.verdict is RunVerdict.OK, report
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _received(box: Box, channel: str, message: int) -> str:
    with _pipes() as (stdin, to_stdin, output, stdout):
        sender = box.spec("covert", "send", channel, f"{message:x}", within=ROOMY, stdin=stdin, stdout=stdout)
        async with _beside(box, sender, to_stdin, output) as running:
            report = await box.run("covert", "receive", channel, within=ROOMY)
            assert not running.done()
    assert report.verdict is RunVerdict.OK
    return report.stdout.decode().strip()


@pytest.mark.parametrize("channel", CHANNELS)
async def test_what_a_box_receives_does_not_depend_on_what_another_sends(box: Box, channel: str) -> None:
    received = await _received(box, channel, MESSAGE)
    assert len(received) == 64
    assert received == await _received(box, channel, OPPOSITE)


@pytest.mark.skipif(IS_LEG, reason="the first leg has shown it, and would be disturbed")
@pytest.mark.parametrize("channel", CHANNELS)
async def test_outside_a_box_the_same_programs_pass_the_message(program_folder: Path, channel: str) -> None:
    """The control: where the kernel lets them, so that the test above proves something."""
    received = ""
    for _ in range(TRIES):  # others on this machine may read the same files
        received = await asyncio.to_thread(_received_outside, program_folder / "covert", channel)
        if received == _bits(MESSAGE) or "?" in received or _is_owners_alone(channel):
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


def _is_owners_alone(channel: str) -> bool:
    """Whether the kernel answers only those who own the files, which an ordinary user does not."""
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


async def test_no_figure_of_the_whole_machine_moves_while_another_box_works(box: Box) -> None:
    with _pipes() as (stdin, to_stdin, output, stdout):
        watcher = box.spec("counters", within=ROOMY, stdin=stdin, stdout=stdout)
        async with _beside(box, watcher, to_stdin, output):
            assert (await box.sandbox.run(box.script(BUSY))).verdict is RunVerdict.OK
        seen = os.read(output, 65_536).decode().split("\n")
    assert [line for line in seen if line.startswith("moves")] == []
    assert seen[-2].startswith("read ")


async def test_outside_a_box_figures_of_the_whole_machine_move(program_folder: Path) -> None:
    told = await asyncio.to_thread(_moving_outside, program_folder / "counters")
    assert b"moves sysinfo" in told
    assert b"moves /proc/stat" in told


def _moving_outside(program: Path) -> bytes:
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == READY
        subprocess.run(["/bin/sleep", "0.05"], check=True)
        return watcher.communicate(b"\n")[0]


async def test_reading_a_shared_file_leaves_no_date_on_it(box: Box, host: Host) -> None:
    shared = host.folder / "shared"
    shared.mkdir()
    try:
        file = shared / "file"
        file.write_text("read me")
        os.utime(file, (1, 2))  # read before it was written: the next read would be noted
        report = await box.sandbox.run(
            box.script("print(open('/shared/file').read())", mounts=(Mount(shared, "/shared"),))
        )
        assert report.stdout == b"read me\n"
        assert file.stat().st_atime == 1
    finally:
        file.unlink()
        shared.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user's boxes all have that user's identity")
async def test_boxes_have_users_of_their_own_so_that_limits_of_a_user_are_not_shared(box: Box) -> None:
    both = [box.sandbox.run(box.script("import os, time; print(os.getuid()); time.sleep(0.2)")) for _ in range(2)]
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


async def test_programs_that_lock_their_own_files_and_ask_about_the_machine_run(box: Box) -> None:
    report = await box.sandbox.run(RunSpec(argv=(PYTHON, "-I", "-c", OWN_LOCKS), limits=ROOMY))
    assert report.stderr == b""
    assert report.stdout.split() == [b"4950", b"True", b"True", b"3", b"False", b"True", b"True"]
