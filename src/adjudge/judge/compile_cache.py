"""Cache of compiled programs on disk, with a size limit and LRU eviction.

An entry is a directory that appears by one rename, so readers never see a partial one. Several worker processes may
share a cache: a user of an entry holds a shared lock (``flock``) on its directory, and only entries without locks are
removed. Space is freed, under a lock on the whole cache, before an entry appears; a program that does not fit is used
from a temporary directory, which is removed with its last user.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DEFAULT_BOUND_BYTES: Final = 2 * 1024**3
_BLOCK_BYTES: Final = 4096
"""Minimum disk usage of a file or directory: many small files fill a disk, too."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CompiledArtifact:
    """A compiled program on disk, kept as long as this object exists."""

    directory: Path
    _lock_fd: int = field(repr=False, compare=False)


class CompileCache:
    """Compiled programs by key, below one directory."""

    def __init__(self, root: Path, bound_bytes: int = DEFAULT_BOUND_BYTES) -> None:
        self.root, self.bound_bytes = root.absolute(), bound_bytes
        self._entries = self.root / "entries"
        self._staging = self.root / "staging"
        for directory in (self.root, self._entries, self._staging):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)
        self._sizes: dict[str, int] = {}
        """Measured entries; an entry never changes."""
        self._locks: dict[Path, int] = {}
        """Locks of directories in which something is being built."""
        with self._locked():
            self._remove_left_behind()

    def get(self, key: str) -> CompiledArtifact | None:
        """Find an entry and mark it as used."""
        entry = self._entries / key
        lock_fd = _lock(entry, fcntl.LOCK_SH)
        if lock_fd is None:
            return None
        os.utime(entry)
        return _artifact(entry, lock_fd)

    @contextmanager
    def stage(self) -> Iterator[Path]:
        """A directory to build an entry in; removed unless it is ``put``."""
        with self._locked():  # so that nobody takes it for an abandoned one before it is locked
            staged = Path(tempfile.mkdtemp(dir=self._staging))
            self._locks[staged] = os.open(staged, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._locks[staged], fcntl.LOCK_EX)
        staged.chmod(0o755)
        try:
            yield staged
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            if (lock_fd := self._locks.pop(staged, None)) is not None:
                os.close(lock_fd)

    def put(self, key: str, staged: Path) -> CompiledArtifact:
        """Make a staged directory an entry; if another process was first, its entry is used."""
        size_bytes = make_read_only(staged)
        with self._locked():
            if (entry := self.get(key)) is not None:
                return entry
            is_cached = self._free_space(size_bytes)
            if is_cached:
                self._sizes[key] = size_bytes
            target = self._entries / key if is_cached else Path(f"{staged}-uncached")
            staged.rename(target)
            lock_fd = self._locks.pop(staged)
            fcntl.flock(lock_fd, fcntl.LOCK_SH)
            return _artifact(target, lock_fd, is_temporary=not is_cached)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process and thread at a time adds or removes entries."""
        with (self.root / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _free_space(self, size_bytes: int) -> bool:
        """Evict entries, least recently used first, until ``size_bytes`` fit; False if too many are in use."""
        with os.scandir(self._entries) as found:
            entries = sorted((entry.stat().st_mtime_ns, entry.name) for entry in found)
        self._sizes = {name: self._sizes.get(name) or disk_bytes(self._entries / name) for _, name in entries}
        total = sum(self._sizes.values()) + size_bytes
        if size_bytes > self.bound_bytes:
            return False
        for _, name in entries:
            if total <= self.bound_bytes:
                break
            if self._remove(self._entries / name):
                total -= self._sizes.pop(name)
        return total <= self.bound_bytes

    def _remove(self, entry: Path) -> bool:
        lock_fd = _lock(entry, fcntl.LOCK_EX)
        if lock_fd is None:
            return False
        try:
            # Renamed first: a reader finds it complete or not at all.
            doomed = self._staging / f"removed-{entry.name}"
            entry.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        finally:
            os.close(lock_fd)
        return True

    def _remove_left_behind(self) -> None:
        """Remove staging directories of killed processes."""
        for staged in self._staging.iterdir():
            if (lock_fd := _lock(staged, fcntl.LOCK_EX)) is not None:
                shutil.rmtree(staged, ignore_errors=True)
                os.close(lock_fd)


def _lock(directory: Path, mode: int) -> int | None:
    """Lock a directory without waiting; None if it is gone or locked by another process."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), directory.stat()):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass  # removed between open and lock, or about to be
    os.close(fd)
    return None


def _artifact(directory: Path, lock_fd: int, *, is_temporary: bool = False) -> CompiledArtifact:
    """An artifact for a locked directory; a temporary one is removed with its last user."""
    artifact = CompiledArtifact(directory, lock_fd)
    weakref.finalize(artifact, _release, directory, lock_fd, is_temporary)
    return artifact


def _release(directory: Path, lock_fd: int, is_temporary: bool) -> None:
    if is_temporary:
        shutil.rmtree(directory, ignore_errors=True)
    os.close(lock_fd)


def make_read_only(directory: Path) -> int:
    """Make a directory readable for all sandbox users and free of links; returns its disk usage."""
    for parent, names, files in os.walk(directory):
        for name in names:
            if not _drop_link(Path(parent, name)):
                Path(parent, name).chmod(0o755)
        for name in files:
            path = Path(parent, name)
            if _drop_link(path):
                continue
            mode = path.stat().st_mode
            path.chmod(0o755 if mode & 0o111 else 0o644)
    return disk_bytes(directory)


def _drop_link(path: Path) -> bool:
    """Remove a link that a compiler run left; it could point anywhere on the host."""
    if path.is_symlink():
        path.unlink()
        return True
    return False


def disk_bytes(directory: Path) -> int:
    """Disk usage of a directory tree, in whole blocks."""
    total = 0
    for parent, _, files in os.walk(directory):
        blocks = (max(1, -(-Path(parent, name).lstat().st_size // _BLOCK_BYTES)) for name in files)
        total += _BLOCK_BYTES * (1 + sum(blocks))
    return total
