"""Temporary files of one judge run: outputs and feedback."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class Scratch:
    """Files of one run at a time: a reusable output file and a feedback directory."""

    output: Path
    output_fd: int
    feedback: Path

    def clear(self) -> int:
        """Truncate the output; returns its descriptor, to be used as stdout."""
        os.ftruncate(self.output_fd, 0)
        os.lseek(self.output_fd, 0, os.SEEK_SET)
        return self.output_fd

    def output_bytes(self) -> int:
        return os.fstat(self.output_fd).st_size

    def clear_feedback(self) -> Path:
        """Delete the feedback of the previous case."""
        for entry in self.feedback.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        return self.feedback


class Workspace:
    """A temporary directory for one judge run; removed afterwards."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent
        self._free: list[Scratch] = []
        self._all: list[Scratch] = []

    def __enter__(self) -> Self:
        """Create the directory."""
        self.root = Path(tempfile.mkdtemp(prefix="adjudge-", dir=self._parent))
        self.root.chmod(0o755)
        self.empty = self.root / "empty"
        self.empty.write_bytes(b"")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the directory."""
        for scratch in self._all:
            os.close(scratch.output_fd)
        shutil.rmtree(self.root, ignore_errors=True)

    @contextmanager
    def scratch(self) -> Iterator[Scratch]:
        """Borrow a ``Scratch``."""
        scratch = self._free.pop() if self._free else self._new_scratch()
        try:
            yield scratch
        finally:
            self._free.append(scratch)

    def _new_scratch(self) -> Scratch:
        number = len(self._all)
        output, feedback = self.root / f"output-{number}", self.root / f"feedback-{number}"
        feedback.mkdir()
        scratch = Scratch(output, os.open(output, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), feedback)
        self._all.append(scratch)
        return scratch
