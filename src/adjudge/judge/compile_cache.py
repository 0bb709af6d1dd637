"""Compiled programs on disk: complete or absent, never more than the bound, the longest unused going first.

An entry is a directory that appears by one rename, so readers never see half of it. Several worker processes may share
one cache: who uses an entry holds a shared lock (``flock``) on its directory, and only an entry that nobody holds is
removed. Room is made, under a lock on the whole cache, before an entry appears; a program for which no room can be made
is used from a directory of its own, which is gone when its last user is.
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
"""What a file or directory takes at least: many small files fill a disk too."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CompiledArtifact:
    """A compiled program on disk. It stays there as long as this object does."""

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
        """Entries that were measured; an entry never changes."""
        self._locks: dict[Path, int] = {}
        """The locks of directories in which something is being built."""
        with self._locked():
            self._remove_left_behind()

    def get(self, key: str) -> CompiledArtifact | None:
        """The entry, marked as used now."""
        entry = self._entries / key
        lock_fd = _lock(entry, fcntl.LOCK_SH)
        if lock_fd is None:
            return None
        os.utime(entry)
        return _artifact(entry, lock_fd)

    @contextmanager
    def stage(self) -> Iterator[Path]:
        """A directory to build an entry in; whatever was not put is removed."""
        with self._locked():  # so that nobody takes it for one that was left behind before it is locked
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
        """Make a staged directory the entry; where another was first, its entry stays."""
        size_bytes = make_read_only(staged)
        with self._locked():
            if (entry := self.get(key)) is not None:
                return entry
            is_cached = self._make_room(size_bytes)
            if is_cached:
                self._sizes[key] = size_bytes
            target = self._entries / key if is_cached else Path(f"{staged}-uncached")
            staged.rename(target)
            lock_fd = self._locks.pop(staged)
            fcntl.flock(lock_fd, fcntl.LOCK_SH)
            return _artifact(target, lock_fd, is_temporary=not is_cached)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process and thread at a time adds or removes."""
        with (self.root / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _make_room(self, size_bytes: int) -> bool:
        """Remove entries, the longest unused first, until so much fits; False where too many are in use."""
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
        """Remove an entry that nobody uses."""
        lock_fd = _lock(entry, fcntl.LOCK_EX)
        if lock_fd is None:
            return False
        try:
            # Renamed first: a reader finds it whole or not at all.
            doomed = self._staging / f"removed-{entry.name}"
            entry.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        finally:
            os.close(lock_fd)
        return True

    def _remove_left_behind(self) -> None:
        """Remove what processes that were killed had begun."""
        for staged in self._staging.iterdir():
            if (lock_fd := _lock(staged, fcntl.LOCK_EX)) is not None:
                shutil.rmtree(staged, ignore_errors=True)
                os.close(lock_fd)


def _lock(directory: Path, mode: int) -> int | None:
    """Lock a directory without waiting; None where it is gone or somebody else's lock is in the way."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), directory.stat()):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass  # it is being removed, or was between the opening and the lock
    os.close(fd)
    return None


def _artifact(directory: Path, lock_fd: int, *, is_temporary: bool = False) -> CompiledArtifact:
    """Take over a locked directory; a temporary one is removed with its last user."""
    artifact = CompiledArtifact(directory, lock_fd)
    weakref.finalize(artifact, _release, directory, lock_fd, is_temporary)
    return artifact


def _release(directory: Path, lock_fd: int, is_temporary: bool) -> None:
    if is_temporary:
        shutil.rmtree(directory, ignore_errors=True)
    os.close(lock_fd)


def make_read_only(directory: Path) -> int:
    """Make a directory readable by every box, free of links, and say how much of the disk it takes."""
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
    """A link that a compiler run left behind could point anywhere on the host."""
    if path.is_symlink():
        path.unlink()
        return True
    return False


def disk_bytes(directory: Path) -> int:
    """How much of the disk a directory takes with all that is in it, in whole blocks."""
    total = 0
    for parent, _, files in os.walk(directory):
        blocks = (max(1, -(-Path(parent, name).lstat().st_size // _BLOCK_BYTES)) for name in files)
        total += _BLOCK_BYTES * (1 + sum(blocks))
    return total
