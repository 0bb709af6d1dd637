"""A run as the launcher reads it: one packet of records and the descriptors that go with it.

The other side is ``launcher/request.h``, which explains the form. Opening files and making anonymous ones happens
here, so that a missing input is the caller's error, by name, before anything is started.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import Limits
from adjudge.sandbox.spec import InputFile, Merge, RunSpec, encode

MAGIC: Final = 0x314A4441
TYPE_RUN: Final = 1
TYPE_CANCEL: Final = 2
TYPE_IN_FD: Final = 3
CANCEL_MESSAGE: Final = struct.pack("<IHH", MAGIC, TYPE_CANCEL, 0)
PACKET_BYTES_MAX: Final = 128 * 1024
INLINE_BYTES_MAX: Final = 16 * 1024
"""Smaller contents travel in the packet itself; larger ones in an anonymous file."""

_RECORD: Final = struct.Struct("<HHI")
_U32: Final = struct.Struct("<I")
_LIMIT_NAMES: Final = tuple(field.name for field in fields(Limits))
_LIMITS: Final = struct.Struct(f"<{len(_LIMIT_NAMES)}Q")
_limit_values: Final = attrgetter(*_LIMIT_NAMES)
_SEALS: Final = 0x0001 | 0x0002 | 0x0004 | 0x0008  # F_SEAL_SEAL, SHRINK, GROW, WRITE
_F_ADD_SEALS: Final = 1033
_JOB_ID, _ATTEMPT_ID, _LIMITS_TAG, _ARGUMENT, _VARIABLE, _STDIN, _STDOUT, _STDERR = range(1, 9)
_FILE_COPY, _FILE_INLINE, _FILE_BIND, _MOUNT, _COLLECT, _COLLECT_TO, _EGRESS = range(9, 16)


class Packet:
    """One request being put together; a context manager, because it owns the descriptors it opened."""

    def __init__(self, spec: RunSpec) -> None:
        self.fds: list[int] = []
        self._records: list[bytes] = []
        self._opened: list[int] = []
        try:
            self._add_all(spec)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was opened here; the launcher has copies of its own."""
        self._close()

    def _close(self) -> None:
        while self._opened:
            os.close(self._opened.pop())

    def message(self) -> bytes:
        """The packet; a long one is moved into an anonymous file, which becomes the first descriptor."""
        data = struct.pack("<IHH", MAGIC, TYPE_RUN, len(self.fds)) + b"".join(self._records)
        if len(data) <= PACKET_BYTES_MAX:
            return data
        self.fds.insert(0, self._anonymous(data))
        return struct.pack("<IHH", MAGIC, TYPE_IN_FD, 1)

    def _add_all(self, spec: RunSpec) -> None:
        self._add(_JOB_ID, encode(spec.job_id) + b"\0")
        self._add(_ATTEMPT_ID, struct.pack("<Q", spec.attempt_id))
        self._add(_LIMITS_TAG, _LIMITS.pack(*_limit_values(spec.limits)))
        for argument in spec.argv:
            self._add(_ARGUMENT, encode(argument) + b"\0")
        for name, value in spec.env.items():
            self._add(_VARIABLE, encode(f"{name}={value}") + b"\0")
        self._add_stdin(spec)
        self._add_output(_STDOUT, "stdout", spec.stdout)
        self._add_output(_STDERR, "stderr", spec.stderr)
        for entry in spec.files:
            self._add_file(entry)
        for mount in spec.mounts:
            self._add(
                _MOUNT, _U32.pack(mount.writable) + encode(str(mount.source)) + b"\0" + encode(mount.target) + b"\0"
            )
        for name in spec.collect:
            self._add(_COLLECT, encode(name) + b"\0")
        for number, way in enumerate(spec.egress):
            address = f"127.0.1.{number + 1}"
            self._add(_EGRESS, _U32.pack(way.port) + address.encode() + b"\0" + way.host.encode() + b"\0")
        if spec.collect and spec.collect_to is not None:
            self._add(_COLLECT_TO, self._open("collect_to", spec.collect_to, os.O_RDONLY | os.O_DIRECTORY))

    def _add(self, tag: int, payload: bytes) -> None:
        self._records.append(_RECORD.pack(tag, 0, len(payload)) + payload)

    def _pass(self, fd: int) -> bytes:
        self.fds.append(fd)
        return _U32.pack(len(self.fds) - 1)

    def _open(self, label: str, path: Path, flags: int) -> bytes:
        try:
            fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InvalidInput(f"{label}: {path} cannot be opened: {error.strerror}.", field=label) from error
        self._opened.append(fd)
        return self._pass(fd)

    def _anonymous(self, content: bytes) -> int:
        """A sealed anonymous file: the program can read it and nothing else."""
        fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._opened.append(fd)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        return _seal(fd)

    def _copy_of(self, source: int, most_bytes: int) -> int:
        """A sealed copy of the rest of an open file: the program must not get a way to reopen it for writing."""
        fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._opened.append(fd)
        copied = 0
        while chunk := os.read(source, 1 << 20):
            copied += len(chunk)
            if copied > most_bytes:
                raise InvalidInput(f"stdin: over the limit of {most_bytes} bytes.", field="stdin")
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
        return _seal(fd)

    def _add_stdin(self, spec: RunSpec) -> None:
        source = spec.stdin
        if source is None or source == b"":
            return
        if isinstance(source, bytes):
            self._add(_STDIN, _U32.pack(1) + self._pass(self._anonymous(source)))
        elif isinstance(source, int):
            regular = stat.S_ISREG(os.fstat(source).st_mode)
            fd = self._copy_of(source, spec.limits.input_bytes) if regular else source
            self._add(_STDIN, _U32.pack(1) + self._pass(fd))
        else:
            self._add_stdin_path(source, spec.limits.input_bytes)

    def _add_stdin_path(self, path: Path, most_bytes: int) -> None:
        try:
            info = os.stat(path)  # noqa: PTH116  # half the cost of Path.stat, and on every run's way
        except OSError as error:
            raise InvalidInput(f"stdin: {path} cannot be read: {error.strerror}.", field="stdin") from error
        if not stat.S_ISREG(info.st_mode):
            self._add(_STDIN, _U32.pack(1) + self._open("stdin", path, os.O_RDONLY))
            return
        if info.st_size > most_bytes:
            raise InvalidInput(f"stdin: {path} is over the limit of {most_bytes} bytes.", field="stdin")
        self._add(_STDIN, _U32.pack(2) + _absolute(path) + b"\0")

    def _add_output(self, tag: int, label: str, target: Path | int | Merge | None) -> None:
        if target is None:
            return
        if isinstance(target, Merge):
            self._add(tag, _U32.pack(2))
        elif isinstance(target, int):
            self._add(tag, _U32.pack(1) + self._pass(target))
        else:
            self._add(tag, _U32.pack(1) + self._open(label, target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))

    def _add_file(self, entry: InputFile) -> None:
        head, name = _U32.pack(entry.executable), encode(entry.name) + b"\0"
        if isinstance(entry.source, bytes):
            if len(entry.source) <= INLINE_BYTES_MAX:
                self._add(_FILE_INLINE, head + name + entry.source)
            else:
                self._add(_FILE_COPY, head + self._pass(self._anonymous(entry.source)) + name)
        elif entry.executable and _anyone_may_run(entry.source):
            self._add(_FILE_BIND, head + _absolute(entry.source) + b"\0" + name)
        else:
            self._add(_FILE_COPY, head + self._open("files", entry.source, os.O_RDONLY) + name)


def _absolute(path: Path) -> bytes:
    name = os.fspath(path)
    return os.fsencode(name if name.startswith("/") else path.absolute())


def _seal(fd: int) -> int:
    fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _anyone_may_run(path: Path) -> bool:
    """Whether a file can be shown as it is; a private one is copied for the program instead."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # as above
    except OSError as error:
        raise InvalidInput(f"files: {path} cannot be read: {error.strerror}.", field="files") from error
    return stat.S_ISREG(mode) and mode & 0o005 == 0o005
