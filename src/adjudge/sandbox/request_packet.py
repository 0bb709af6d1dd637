"""Builds the request for a run: one packet of records, and the descriptors sent with it.

``launcher/request.h`` describes the format. Input files are opened here, so that a missing file is an ``InvalidInput``
with its path, before anything is started. Executables that are bind-mounted are opened by the launcher; if that fails,
``check_executable_exists`` tells a missing file from a system error.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.sandbox.request_records import U32, RecordTag, encode_os_text, encode_record
from adjudge.sandbox.spec import InputFile, SandboxRunSpec, StderrTarget

MAGIC: Final = 0x314A4441
TYPE_RUN: Final = 1
TYPE_CANCEL: Final = 2
TYPE_IN_FD: Final = 3
CANCEL_MESSAGE: Final = struct.pack("<IHH", MAGIC, TYPE_CANCEL, 0)
PACKET_BYTES_MAX: Final = 128 * 1024
INLINE_BYTES_MAX: Final = 16 * 1024
"""Content up to this size is sent in the packet, larger content in a memfd."""

_PACKET: Final = struct.Struct("<IHH")
_SEALS: Final = 0x0001 | 0x0002 | 0x0004 | 0x0008  # F_SEAL_SEAL, SHRINK, GROW, WRITE
_F_ADD_SEALS: Final = 1033


class RequestPacket:
    """One request. It owns the descriptors that it opened and must be closed."""

    __slots__ = ("_opened", "_records", "fds")

    def __init__(self, spec: SandboxRunSpec) -> None:
        self.fds: list[int] = []
        self._opened: list[int] = []
        self._records = [spec.head]
        try:
            self._add_all(spec)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the opened descriptors; the launcher has received its own copies."""
        while self._opened:
            os.close(self._opened.pop())

    def message(self) -> bytes:
        """Return the packet. If it is too long, it is written to a memfd, which becomes the first descriptor."""
        data = _PACKET.pack(MAGIC, TYPE_RUN, len(self.fds)) + b"".join(self._records)
        if len(data) <= PACKET_BYTES_MAX:
            return data
        self.fds.insert(0, self._memfd([data]))
        return _PACKET.pack(MAGIC, TYPE_IN_FD, 1)

    def _add_all(self, spec: SandboxRunSpec) -> None:
        if spec.stdin is not None:
            self._add_stdin(spec.stdin, spec.limits.input_bytes)
        if spec.stdout is not None:
            self._add_output(RecordTag.STDOUT, "stdout", spec.stdout)
        if spec.stderr is not None:
            self._add_output(RecordTag.STDERR, "stderr", spec.stderr)
        for entry in spec.files:
            self._add_file(entry)
        for mount in spec.mounts:
            self._add(
                RecordTag.MOUNT,
                U32.pack(mount.writable)
                + encode_os_text(str(mount.source))
                + b"\0"
                + encode_os_text(mount.target)
                + b"\0",
            )
        for name in spec.collect:
            self._add(RecordTag.COLLECT, encode_os_text(name) + b"\0")
        if spec.collect and spec.collect_to is not None:
            self._add(RecordTag.COLLECT_TO, self._open("collect_to", spec.collect_to, os.O_RDONLY | os.O_DIRECTORY))
        for number, target in enumerate(spec.egress):
            address = f"127.0.1.{number + 1}"
            self._add(RecordTag.EGRESS, U32.pack(target.port) + address.encode() + b"\0" + target.host.encode() + b"\0")

    def _add(self, tag: RecordTag, payload: bytes) -> None:
        self._records.append(encode_record(tag, payload))

    def _pass(self, fd: int) -> bytes:
        self.fds.append(fd)
        return U32.pack(len(self.fds) - 1)

    def _open(self, label: str, path: Path, flags: int) -> bytes:
        try:
            fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unreadable(label, path, error) from error
        self._opened.append(fd)
        return self._pass(fd)

    def _memfd(self, chunks: Iterable[bytes]) -> int:
        """Create a sealed memfd, which the program can only read."""
        fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._opened.append(fd)
        with open(fd, "wb", closefd=False) as file:
            file.writelines(chunks)
        fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def _add_stdin(self, source: Path | bytes | int, max_bytes: int) -> None:
        if isinstance(source, bytes):
            if source:
                self._add(RecordTag.STDIN, U32.pack(1) + self._pass(self._memfd([source])))
        elif isinstance(source, int):
            regular = stat.S_ISREG(os.fstat(source).st_mode)
            # Copied, so that the program cannot reopen the file for writing.
            fd = self._memfd(_read_chunks(source, max_bytes)) if regular else source
            self._add(RecordTag.STDIN, U32.pack(1) + self._pass(fd))
        else:
            self._add_stdin_path(source, max_bytes)

    def _add_stdin_path(self, path: Path, max_bytes: int) -> None:
        try:
            info = os.stat(path)  # noqa: PTH116  # called for every run; Path.stat takes twice as long
        except OSError as error:
            raise InvalidInput(f"stdin: {path} cannot be read: {error.strerror}.", field="stdin") from error
        if not stat.S_ISREG(info.st_mode):
            self._add(RecordTag.STDIN, U32.pack(1) + self._open("stdin", path, os.O_RDONLY))
            return
        if info.st_size > max_bytes:
            raise InvalidInput(f"stdin: {path} is over the limit of {max_bytes} bytes.", field="stdin")
        self._add(RecordTag.STDIN, U32.pack(2) + _absolute(path) + b"\0")

    def _add_output(self, tag: RecordTag, label: str, target: Path | int | StderrTarget) -> None:
        if isinstance(target, StderrTarget):
            self._add(tag, U32.pack(2))
        elif isinstance(target, int):
            self._add(tag, U32.pack(1) + self._pass(target))
        else:
            self._add(tag, U32.pack(1) + self._open(label, target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))

    def _add_file(self, entry: InputFile) -> None:
        source = entry.source
        if isinstance(source, bytes):
            self._add_content(entry, source)
        elif entry.executable:
            self._records.append(entry.bind_record)  # opened by the launcher
        else:
            self._add_copy(entry, self._open("files", source, os.O_RDONLY))

    def _add_content(self, entry: InputFile, content: bytes) -> None:
        if len(content) > INLINE_BYTES_MAX:
            self._add_copy(entry, self._pass(self._memfd([content])))
        else:
            self._add(RecordTag.FILE_INLINE, U32.pack(entry.executable) + entry.encoded_name + content)

    def _add_copy(self, entry: InputFile, passed: bytes) -> None:
        self._add(RecordTag.FILE_COPY, U32.pack(entry.executable) + passed + entry.encoded_name)


def _absolute(path: Path) -> bytes:
    name = os.fspath(path)
    return os.fsencode(name if name.startswith("/") else path.absolute())


def _read_chunks(source: int, max_bytes: int) -> Iterator[bytes]:
    size_bytes = 0
    while chunk := os.read(source, 1 << 20):
        size_bytes += len(chunk)
        if size_bytes > max_bytes:
            raise InvalidInput(f"stdin: over the limit of {max_bytes} bytes.", field="stdin")
        yield chunk


def check_executable_exists(entry: InputFile) -> None:
    """Raise ``InvalidInput`` if the executable cannot be opened here either; else the launcher failed."""
    if isinstance(entry.source, bytes):
        return
    try:
        os.close(os.open(entry.source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        raise _unreadable("files", entry.source, error) from error


def _unreadable(label: str, path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{label}: {path} cannot be opened: {error.strerror}.", field=label)
