"""Reports who opens and closes files of a directory: inotify, read in the event loop.

Python's standard library has no inotify, so libc is called. Contains only what ``fifos`` needs.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import struct
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import Final

from adjudge.domain.errors import Unavailable

_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 16 * 1024
"""Bytes read per callback of the event loop: about 500 events, a few milliseconds."""
_QUEUE_OVERFLOW: Final = 0x4000
_libc: Final = ctypes.CDLL(None, use_errno=True)


class Change(IntFlag):
    """What happened to a file; the values are inotify's."""

    CLOSED_WRITE = 0x08
    """Closed by a descriptor that could write."""
    CLOSED_READ = 0x10
    """Closed by a descriptor that could only read."""
    OPENED = 0x20


@dataclass(frozen=True, slots=True)
class FileEvent:
    """One change of one file."""

    directory: Path
    name: str
    change: Change


class DirectoryWatch:
    """Reports opened and closed files of directories, by the name used to open them."""

    def __init__(self, listener: Callable[[FileEvent], None], on_overflow: Callable[[], None]) -> None:
        """Call ``listener`` for each event, and ``on_overflow`` if the kernel's queue was full and events were lost."""
        self._listener = listener
        self._on_overflow = on_overflow
        self._is_stopped = False
        self._directories: dict[int, Path] = {}
        self._fd = _checked(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), "inotify_init1")
        asyncio.get_running_loop().add_reader(self._fd, self.read_some)

    def add(self, directory: Path) -> None:
        mask = int(Change.OPENED | Change.CLOSED_WRITE | Change.CLOSED_READ)
        number = _checked(_libc.inotify_add_watch(self._fd, os.fsencode(directory), mask), "inotify_add_watch")
        self._directories[number] = directory

    def read_some(self) -> int:
        """Pass on a bounded number of events; returns their size in bytes, 0 if there are none.

        A program can create events faster than they are read, so reading until none is left might never end. The event
        loop calls again while there are more.
        """
        if self._is_stopped:
            return 0
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return 0
        offset = 0
        while offset < len(data) and not self._is_stopped:
            number, mask, _, length = _HEADER.unpack_from(data, offset)
            name = data[offset + _HEADER.size : offset + _HEADER.size + length].rstrip(b"\0")
            offset += _HEADER.size + length
            change = Change(mask & int(Change.OPENED | Change.CLOSED_WRITE | Change.CLOSED_READ))
            if mask & _QUEUE_OVERFLOW:
                self._on_overflow()
            elif name and change and number in self._directories:
                self._listener(FileEvent(self._directories[number], os.fsdecode(name), change))
        return len(data)

    def read_queued(self) -> None:
        """Pass on the events that are queued now; events that arrive meanwhile may be included."""
        left = int.from_bytes(fcntl.ioctl(self._fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        while left > 0 and (size := self.read_some()):
            left -= size

    def stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            asyncio.get_running_loop().remove_reader(self._fd)

    def close(self) -> None:
        """Stop, and close the descriptor."""
        self.stop()
        os.close(self._fd)


def _checked(result: int, step: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise Unavailable(
            f"{step} failed: {os.strerror(code)}. Raise fs.inotify.max_user_instances or max_user_watches.", step=step
        )
    return result
