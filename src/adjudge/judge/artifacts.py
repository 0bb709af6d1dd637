"""Compiled programs on disk: complete or absent, bounded in size, the longest unused going first.

An entry is a directory that appears by one rename, so readers never see half of it, in this process or another.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

DEFAULT_BOUND_BYTES: Final = 2 * 1024**3
_GRACE_SEC: Final = 600
"""An entry used this recently stays: another process may be running it."""
_LOW_WATER: Final = 0.8


class ArtifactCache:
    """Directories by key, below one root."""

    def __init__(self, root: Path, bound_bytes: int = DEFAULT_BOUND_BYTES, grace_sec: float = _GRACE_SEC) -> None:
        self.root, self.bound_bytes, self._grace_sec = root.absolute(), bound_bytes, grace_sec
        self._entries = self.root / "entries"
        self._staging = self.root / "staging"
        for directory in (self.root, self._entries, self._staging):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)
        self._held: Counter[str] = Counter()
        self._total_bytes: int | None = None

    def get(self, key: str) -> Path | None:
        """The entry, marked as used now."""
        entry = self._entries / key
        try:
            os.utime(entry)
        except FileNotFoundError:
            return None
        return entry

    @contextmanager
    def stage(self) -> Iterator[Path]:
        """A directory to build an entry in; whatever was not put is removed."""
        staged = Path(tempfile.mkdtemp(dir=self._staging))
        staged.chmod(0o755)
        try:
            yield staged
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def put(self, key: str, staged: Path) -> Path:
        """Make a staged directory the entry; where another process was first, its entry stays."""
        size_bytes = seal(staged)
        entry = self._entries / key
        try:
            staged.rename(entry)
        except OSError:
            if not entry.is_dir():
                raise
        self._total_bytes = size_bytes + (self._measure() if self._total_bytes is None else self._total_bytes)
        if self._total_bytes > self.bound_bytes:
            self._evict(key)
        return entry

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Keep an entry from being evicted by this process while it is in use."""
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1

    def _measure(self) -> int:
        return sum(_size_bytes(entry) for entry in self._entries.iterdir())

    def _evict(self, newest: str) -> None:
        entries = sorted(self._entries.iterdir(), key=lambda entry: entry.stat().st_mtime)
        sizes = {entry.name: _size_bytes(entry) for entry in entries}
        total, now = sum(sizes.values()), time.time()
        for entry in entries:
            if total <= self.bound_bytes * _LOW_WATER:
                break
            if entry.name == newest or self._held[entry.name] or now - entry.stat().st_mtime < self._grace_sec:
                continue
            # Renamed first: a reader finds it whole or not at all.
            doomed = self._staging / f"doomed-{entry.name}-{os.getpid()}"
            entry.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
            total -= sizes[entry.name]
        self._total_bytes = total


def seal(directory: Path) -> int:
    """Make a directory readable by every box, free of links, and say how large it is."""
    total = 0
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
            total += path.stat().st_size
    return total


def _drop_link(path: Path) -> bool:
    """A link that a compiler run left behind could point anywhere on the host."""
    if path.is_symlink():
        path.unlink()
        return True
    return False


def _size_bytes(directory: Path) -> int:
    return sum(Path(parent, name).lstat().st_size for parent, _, files in os.walk(directory) for name in files)
