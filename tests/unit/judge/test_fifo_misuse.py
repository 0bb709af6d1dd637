"""Processes that open their FIFOs endlessly are stopped and do not block the event loop."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from adjudge.judge import fifos as fifos_module
from adjudge.judge.directory_watch import DirectoryWatch, FileEvent
from adjudge.judge.fifos import FifoMisuse, Fifos, open_fifos
from adjudge.sandbox import SandboxRunReport, SandboxVerdict

OK = SandboxRunReport(SandboxVerdict.OK, time_ms=0, wall_ms=0, mem_kb=0, exit_code=0, exit_signal=0)
MAX_QUEUED = Path("/proc/sys/fs/inotify/max_queued_events")
BOUND = 2_000
"""More events than one callback may handle."""


def open_and_close(path: Path, times: int = 1) -> None:
    for _ in range(times):
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


class Endless:
    """Watches a file that is opened again for each event that is handled: the queue never becomes empty."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "file"
        self.path.touch()
        self.events = 0
        self.watch = DirectoryWatch(self.seen, self.lost)
        self.watch.add(directory)
        open_and_close(self.path, 100)

    def seen(self, _: FileEvent) -> None:
        self.events += 1
        assert self.events < BOUND, "the watch does not return while events keep coming"
        open_and_close(self.path)

    def lost(self) -> None:
        raise AssertionError("no event is lost here")


@pytest.mark.parametrize("method", ["read_some", "read_queued"])
async def test_reading_returns_while_events_keep_coming(tmp_path: Path, method: str) -> None:
    endless = Endless(tmp_path)
    getattr(endless.watch, method)()
    assert 200 <= endless.events < BOUND
    endless.watch.close()


async def test_events_beyond_one_read_arrive_in_later_callbacks(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    events: list[FileEvent] = []
    watch = DirectoryWatch(events.append, lambda: None)
    watch.add(tmp_path)
    open_and_close(tmp_path / "file", 1_000)
    watch.read_some()
    assert 0 < len(events) < 2_000
    async with asyncio.timeout(30):
        while len(events) < 2_000:
            await asyncio.sleep(0)
    watch.close()


async def never_ends() -> SandboxRunReport:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def started(fifos: Fifos, number: int) -> asyncio.Task[SandboxRunReport]:
    waiting = asyncio.create_task(fifos.run_process(fifos.lines[number], never_ends()))
    await asyncio.sleep(0)
    return waiting


async def test_process_with_too_many_openings_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fifos_module, "MAX_OPENINGS", 50)
    with open_fifos(2, tmp_path) as fifos:
        other, guilty = await started(fifos, 0), await started(fifos, 1)
        open_and_close(fifos.manager_directory / "to0", 51)
        open_and_close(fifos.lines[0].directory / "to0", 50)
        open_and_close(fifos.lines[1].directory / "to1", 25)
        open_and_close(fifos.lines[1].directory / "from1", 26)
        with pytest.raises(FifoMisuse, match="process 1 opened its fifos too many times"):
            await asyncio.wait_for(guilty, 30)
        assert not other.done()
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other


async def test_openings_counted_after_exit_are_misuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fifos_module, "MAX_OPENINGS", 50)
    with open_fifos(1, tmp_path) as fifos:

        async def ends() -> SandboxRunReport:
            open_and_close(fifos.lines[0].directory / "to0", 51)
            return OK

        with pytest.raises(FifoMisuse):
            await fifos.run_process(fifos.lines[0], ends())


async def test_lost_events_stop_the_process_that_opened_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = int(MAX_QUEUED.read_text())
    monkeypatch.setattr(fifos_module, "MAX_OPENINGS", queued)
    with open_fifos(2, tmp_path) as fifos:
        other, guilty = await started(fifos, 0), await started(fifos, 1)
        open_and_close(fifos.lines[1].directory / "to1", queued // 3)
        open_and_close(fifos.lines[0].directory / "to0", queued // 4)
        with pytest.raises(FifoMisuse, match="process 1"):
            await asyncio.wait_for(guilty, 30)
        assert not other.done()
        other.cancel()


async def test_cancelling_is_not_misuse(tmp_path: Path) -> None:
    with open_fifos(1, tmp_path) as fifos:
        waiting = await started(fifos, 0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
