"""The named pipes (FIFOs) between a manager and the processes of a submission.

Each party has its own directory. The manager's contains the FIFOs of all processes, that of a process only its own two;
both are hard links to the same FIFOs, which are in a third, private directory.

A FIFO has no direction, and CMS's own examples use theirs in the opposite direction of its documentation. So nothing
here assumes a direction, or an order of opening. We keep every FIFO open ourselves, and use inotify on the parties'
directories to know who has opened it. For each FIFO:

- While we hold a *write* end, no ``open`` blocks, and no reader sees EOF. We close it when those who have the FIFO open
  may see EOF: the other party has opened it as many times as they have, or has ended. From then on a reader sees EOF
  when the last writer closes it.
- We hold a *read* end until both parties have ended: a writer is never killed by SIGPIPE because the other party just
  ended, and nothing that was written before the reader opened its end is lost.
- When a party has ended, what the other writes to it is read and discarded, unless the FIFO contains what the ended
  party wrote. How the ended party closed its end (for reading or for writing) tells which of the two it is.

A process that opens its FIFOs more than ``MAX_OPENINGS`` times is stopped (``FifoMisuse``): it can create inotify
events faster than they are read, until the kernel drops some and the counts are wrong.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from adjudge.judge.directory_watch import Change, DirectoryWatch, FileEvent
from adjudge.sandbox import Mount, SandboxRunReport

MOUNT_POINT: Final = "/fifos"
MAX_OPENINGS: Final = 10_000
"""Maximum number of times a process may open its two FIFOs in total. One that opens them for each message needs two."""
_DRAIN_BYTES: Final = 64 * 1024


class FifoMisuse(Exception):
    """A process opened its FIFOs too many times and was stopped."""

    def __init__(self, line: Line) -> None:
        super().__init__(f"process {line.number} opened its fifos too many times (at most {MAX_OPENINGS})")


class Party(Enum):
    """One of the two sides of a FIFO."""

    MANAGER = "manager"
    PROCESS = "process"

    @property
    def other(self) -> Party:
        """The opposite side."""
        return Party.PROCESS if self is Party.MANAGER else Party.MANAGER


@dataclass(slots=True)
class _Use:
    """What one party has done with a FIFO."""

    sessions: int = 0
    """Number of times it was opened."""
    open: int = 0
    """Number of open descriptors."""
    wrote: bool = False
    """Whether a writable descriptor was closed."""
    ended: bool = False


@dataclass(slots=True)
class _Fifo:
    """One FIFO and the descriptor that we hold."""

    path: Path
    fd: int = -1
    holds_write_end: bool = False
    is_drained: bool = False
    uses: dict[Party, _Use] = field(default_factory=lambda: {party: _Use() for party in Party})

    def create(self) -> None:
        os.mkfifo(self.path)
        self.path.chmod(0o666)
        self._hold(write_end=True)

    def seen(self, party: Party, change: Change) -> None:
        """Count an opening or closing."""
        use = self.uses[party]
        if Change.OPENED in change:
            use.sessions += 1
            use.open += 1
        else:
            use.open -= 1
            use.wrote = use.wrote or Change.CLOSED_WRITE in change
        self.settle()

    def settle(self) -> None:
        """Hold and drain as the state of both parties requires."""
        if self.fd < 0:
            return
        if all(use.ended for use in self.uses.values()):
            self.close()
            return
        self._hold(write_end=not self._may_see_end())
        owner_ended = next((use for use in self.uses.values() if use.ended), None)
        if owner_ended is not None and not owner_ended.wrote:
            self._drain_from_now_on()

    def _may_see_end(self) -> bool:
        opened = [party for party, use in self.uses.items() if use.open > 0 and not use.ended]
        return bool(opened) and all(
            self.uses[party.other].ended or self.uses[party.other].sessions >= self.uses[party].sessions
            for party in opened
        )

    def _hold(self, *, write_end: bool) -> None:
        """Replace our descriptor; the new one is opened before the old one is closed, so that no data is lost."""
        if self.fd >= 0 and self.holds_write_end == write_end:
            return
        old, mode = self.fd, os.O_RDWR if write_end else os.O_RDONLY
        self.fd, self.holds_write_end = os.open(self.path, mode | os.O_NONBLOCK | os.O_CLOEXEC), write_end
        if old >= 0:
            self._stop_draining(old)
            os.close(old)

    def _drain_from_now_on(self) -> None:
        if not self.is_drained:
            self.is_drained = True
            asyncio.get_running_loop().add_reader(self.fd, self._drain)

    def _stop_draining(self, fd: int) -> None:
        if self.is_drained:
            self.is_drained = False
            asyncio.get_running_loop().remove_reader(fd)

    def _drain(self) -> None:
        try:
            data = os.read(self.fd, _DRAIN_BYTES)
        except BlockingIOError:
            return
        if not data:
            # No writer is left. An empty FIFO stays readable then, which would keep the event loop busy: wait for the
            # next opening, which calls ``settle``.
            self._stop_draining(self.fd)

    def close(self) -> None:
        if self.fd >= 0:
            self._stop_draining(self.fd)
            os.close(self.fd)
            self.fd = -1


@dataclass(slots=True)
class Line:
    """The two FIFOs between the manager and one process."""

    number: int
    directory: Path
    """The directory mounted for the process."""
    to_process: _Fifo
    from_process: _Fifo
    is_misused: bool = False
    run: asyncio.Task[SandboxRunReport] | None = None

    @property
    def openings(self) -> int:
        """Number of times the process has opened its FIFOs."""
        return sum(fifo.uses[Party.PROCESS].sessions for fifo in (self.to_process, self.from_process))

    @property
    def paths(self) -> tuple[str, str]:
        """The paths inside the sandbox, from the process and to it: the manager's order."""
        return f"{MOUNT_POINT}/{self.from_process.path.name}", f"{MOUNT_POINT}/{self.to_process.path.name}"

    @property
    def mount(self) -> Mount:
        """The mount of the process, with only its own two FIFOs."""
        return Mount(self.directory, MOUNT_POINT)

    def open_as_stdio(self) -> tuple[int, int]:
        """Descriptors for the stdin and stdout of a process; the caller closes them."""
        ends = []
        for fifo, flags in ((self.to_process, os.O_RDONLY), (self.from_process, os.O_WRONLY)):
            ends.append(os.open(fifo.path, flags | os.O_CLOEXEC))
            use = fifo.uses[Party.PROCESS]
            use.sessions, use.open, use.wrote = 1, 1, flags == os.O_WRONLY
            fifo.settle()
        return ends[0], ends[1]


class Fifos:
    """All FIFOs of one run of a communication problem."""

    def __init__(self, count: int, parent: Path) -> None:
        self._hidden = parent / "all"
        self.manager_directory = parent / "manager"
        self._watch = DirectoryWatch(self._seen, self._events_lost)
        self._parties: dict[Path, Party] = {self.manager_directory: Party.MANAGER}
        self._by_directory: dict[Path, Line] = {}
        self._by_name: dict[str, _Fifo] = {}
        self.lines: list[Line] = []
        self._hidden.mkdir(mode=0o700)
        self.manager_directory.mkdir()
        for number in range(count):
            self.lines.append(self._line(number, parent / f"process{number}"))
        for directory in self._parties:
            directory.chmod(0o755)
            self._watch.add(directory)

    def _line(self, number: int, directory: Path) -> Line:
        directory.mkdir()
        self._parties[directory] = Party.PROCESS
        to_process, from_process = (self._fifo(name, directory) for name in (f"to{number}", f"from{number}"))
        line = self._by_directory[directory] = Line(number, directory, to_process, from_process)
        return line

    def _fifo(self, name: str, directory: Path) -> _Fifo:
        fifo = self._by_name[name] = _Fifo(self._hidden / name)
        fifo.create()
        for place in (directory, self.manager_directory):
            (place / name).hardlink_to(fifo.path)
        return fifo

    def _seen(self, event: FileEvent) -> None:
        self._by_name[event.name].seen(self._parties[event.directory], event.change)
        line = self._by_directory.get(event.directory)
        if line is not None and line.openings > MAX_OPENINGS:
            self._stop(line)

    def _events_lost(self) -> None:
        """The kernel's queue was full, so the counts are wrong: stop the process with the most openings."""
        self._stop(max(self.lines, key=lambda line: line.openings))

    def _stop(self, line: Line) -> None:
        self._watch.stop()
        line.is_misused = True
        if line.run is not None:
            line.run.cancel()

    async def run_process(self, line: Line, run: Coroutine[Any, Any, SandboxRunReport]) -> SandboxRunReport:
        """Wait for the run of a process; kill it and raise ``FifoMisuse`` if it opens its FIFOs too many times."""
        line.run = asyncio.create_task(run)
        try:
            report = await line.run
        except asyncio.CancelledError:
            waiter = asyncio.current_task()
            if line.is_misused and waiter is not None and not waiter.cancelling():
                raise FifoMisuse(line) from None
            raise
        self.process_ended(line)
        if line.is_misused:
            raise FifoMisuse(line)
        return report

    @property
    def manager_mount(self) -> Mount:
        return Mount(self.manager_directory, MOUNT_POINT)

    def process_ended(self, line: Line) -> None:
        """A process has ended: the manager reads the rest and then EOF, and its writes do not block."""
        self._ended((line.to_process, line.from_process), Party.PROCESS)

    def manager_ended(self) -> None:
        """The manager has ended: the same for every process."""
        self._ended(tuple(self._by_name.values()), Party.MANAGER)

    def _ended(self, fifos: tuple[_Fifo, ...], party: Party) -> None:
        # The kernel closed the descriptors before it reported the exit: those events are already queued.
        self._watch.read_queued()
        for fifo in fifos:
            fifo.uses[party].ended = True
            fifo.settle()

    def close(self) -> None:
        self._watch.close()
        for fifo in self._by_name.values():
            fifo.close()


@contextmanager
def open_fifos(count: int, parent: Path) -> Iterator[Fifos]:
    """Create the FIFOs of ``count`` processes below a directory; they are removed afterwards."""
    with TemporaryDirectory(prefix="fifos-", dir=parent, ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)
        fifos = Fifos(count, Path(directory))
        try:
            yield fifos
        finally:
            fifos.close()
