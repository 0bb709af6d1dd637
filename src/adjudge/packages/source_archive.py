"""Reads submitted archives (ZIP, tar, tar.gz), in memory: few and small files, untrusted.

Rejects names that leave the archive, links, devices, encrypted or duplicate entries, and archives with more files or
bytes than allowed. Bytes are counted while unpacking, not taken from the archive's headers.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import MIB
from adjudge.judge.sources import SourceFile
from adjudge.packages.findings import PackageRefused
from adjudge.packages.safe_paths import is_junk, safe_path

ARCHIVE_ENDINGS: Final = (".zip", ".tar", ".tar.gz", ".tgz")
_ENTRIES_MAX: Final = 1_000
"""Maximum entries of an archive, folders and ignored files included."""
_HEADERS_BYTES: Final = 4 * MIB
"""Maximum size of the headers and padding of a tar."""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Other methods may need gigabytes of memory to unpack."""
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How many files a submission may have, and their total size."""

    files: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class _ArchiveEntry:
    name: str
    is_file: bool
    is_folder: bool
    stream: IO[bytes] | None


def is_archive(name: str) -> bool:
    """Whether a submitted file is unpacked, by its name."""
    return name.lower().endswith(ARCHIVE_ENDINGS)


def expand_archives(files: Sequence[SourceFile], limits: FileLimits, field: str = "files") -> tuple[SourceFile, ...]:
    """The files with every archive replaced by its content; rejects too many files and too many bytes."""
    expanded: list[SourceFile] = []
    left_bytes = limits.total_bytes
    for file in files:
        if is_archive(file.name):
            found = _unpack(file, left_bytes, limits, field)
        else:
            found = [SourceFile(_name(file.name, file.name, field), file.data)]
        left_bytes -= sum(len(entry.data) for entry in found)
        if left_bytes < 0:
            raise _refused(field, file.name, f"the submission has more than {limits.total_bytes} bytes in all")
        expanded += found
        if len(expanded) > limits.files:
            raise _refused(field, file.name, f"the submission has more than {limits.files} files; leave out some")
    _check_unique(expanded, field)
    return tuple(expanded)


def _check_unique(files: Sequence[SourceFile], field: str) -> None:
    names: set[str] = set()
    for file in files:
        if file.name in names:
            raise _refused(field, file.name, "given twice; rename or leave out one of them")
        names.add(file.name)
    for name in names:
        steps = name.split("/")
        for depth in range(1, len(steps)):
            if (parent := "/".join(steps[:depth])) in names:
                raise _refused(field, parent, "is both a file and a folder; rename one of them")


def _unpack(archive: SourceFile, left_bytes: int, limits: FileLimits, field: str) -> list[SourceFile]:
    found: list[SourceFile] = []
    try:
        for entry in _entries(archive, left_bytes):
            if entry.is_folder or is_junk(entry.name):
                continue
            name = _name(entry.name, archive.name, field)
            if not entry.is_file or entry.stream is None:
                raise _refused(field, f"{archive.name}: {name}", "is a link or a device; pack regular files only")
            data = entry.stream.read(left_bytes + 1)
            left_bytes -= len(data)
            if left_bytes < 0:
                message = f"the submission has more than {limits.total_bytes} bytes in all"
                raise _refused(field, f"{archive.name}: {name}", message)
            found.append(SourceFile(name, data))
            if len(found) > limits.files:
                raise _refused(field, archive.name, f"has more than {limits.files} files; leave out some")
    except _DAMAGED as error:
        raise _refused(field, archive.name, f"is not a readable archive ({error}); pack it again") from error
    if not found:
        raise _refused(field, archive.name, "has no files; pack at least one")
    return found


def _entries(archive: SourceFile, left_bytes: int) -> Iterator[_ArchiveEntry]:
    name = archive.name.lower()
    if name.endswith(".zip"):
        entries = _zip_entries(archive.data)
    else:
        is_packed = not name.endswith(".tar")
        entries = _tar_entries(_gunzip(archive.data, left_bytes + _HEADERS_BYTES) if is_packed else archive.data)
    for number, entry in enumerate(entries):
        if number >= _ENTRIES_MAX:
            raise ValueError(f"more than {_ENTRIES_MAX} entries")
        yield entry


def _gunzip(data: bytes, most_bytes: int) -> bytes:
    """Unpack before ``tarfile`` sees it: a header of a tar may be as large as a file, and is read at once."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    unpacked = unpacker.decompress(data, most_bytes)
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {most_bytes} bytes")
    return unpacked


def _zip_entries(data: bytes) -> Iterator[_ArchiveEntry]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.flag_bits & 0x1:
                raise ValueError(f"{info.filename[:100]!r} is encrypted")
            if info.compress_type not in _METHODS:
                raise ValueError(f"{info.filename[:100]!r} is compressed by another method than Deflate")
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_file = not info.is_dir() and kind in (0, stat.S_IFREG)
            if not is_file:
                yield _ArchiveEntry(info.filename, is_file=False, is_folder=info.is_dir(), stream=None)
                continue
            with archive.open(info) as stream:
                yield _ArchiveEntry(info.filename, is_file=True, is_folder=False, stream=stream)


def _tar_entries(data: bytes) -> Iterator[_ArchiveEntry]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for info in archive:
            stream = archive.extractfile(info) if info.isreg() else None
            yield _ArchiveEntry(info.name, is_file=info.isreg(), is_folder=info.isdir(), stream=stream)


def _name(raw: str, shown: str, field: str) -> str:
    try:
        name = safe_path(raw)
    except PackageRefused as error:
        found = error.findings[0]
        message = found.message.rstrip(".").replace("package", "submission")
        raise _refused(field, found.path, f"{message}; {found.fix.rstrip('.')}") from None
    if not name:
        raise _refused(field, shown, "a file has no name; give it one")
    for step in name.split("/"):
        if step[0] in "-@" or step != step.strip():
            raise _refused(field, name, "a name must not begin with '-', '@' or a space; rename the file")
    return name


def _refused(field: str, name: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{field}: {name[:200]}: {problem}.", field=field)
