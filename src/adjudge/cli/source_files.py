"""Reads the files of a solution from the command line: files, folders and archives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.packages.source_archive import FileLimits, expand_archives

SOURCE_BYTES_MAX: Final = 64 * 1024 * 1024
_FILES_MAX: Final = 1_000


def read_source(paths: Sequence[Path], entry_point: str = "", field: str = "solution") -> ProgramSource:
    """A solution from files, folders and archives.

    Files of a folder are named by their path in it, others by their path from the folder that all of them are in.
    """
    files: dict[str, Path] = {}
    for path in paths:
        found = _folder(path, field) if path.is_dir() else {_name(path, paths): path}
        for name, file in found.items():
            if name in files:
                raise InvalidInput(f"{file}: {name} is given twice; leave out one.", field=field)
            files[name] = file
    if len(files) > _FILES_MAX or sum(_size(file, field) for file in files.values()) > SOURCE_BYTES_MAX:
        raise InvalidInput(
            f"{paths[0]}: more than {_FILES_MAX} files or {SOURCE_BYTES_MAX // 2**20} MiB; is this the right folder?",
            field=field,
        )
    read = [SourceFile(name, _read(file, field)) for name, file in files.items()]
    return ProgramSource(expand_archives(read, FileLimits(_FILES_MAX, SOURCE_BYTES_MAX), field), entry_point)


def _folder(path: Path, field: str) -> dict[str, Path]:
    entries = sorted(entry for entry in path.rglob("*") if entry.is_file() and not entry.is_symlink())
    if not entries:
        raise InvalidInput(f"{path}: folder is empty.", field=field)
    return {entry.relative_to(path).as_posix(): entry for entry in entries}


def _name(path: Path, paths: Sequence[Path]) -> str:
    parents = [other.absolute().parent for other in paths if not other.is_dir()]
    return path.absolute().relative_to(os.path.commonpath(parents)).as_posix()


def _size(file: Path, field: str) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise _unreadable(file, error, field) from None


def _read(file: Path, field: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error, field) from None


def _unreadable(file: Path, error: OSError, field: str) -> InvalidInput:
    if isinstance(error, FileNotFoundError):
        return InvalidInput(f"{file}: no such file or folder.", field=field)
    return InvalidInput(f"{file}: cannot read file: {error.strerror}.", field=field)
