"""The memory that a launcher puts kept output into, shared with us: first stdout's bytes, then stderr's."""

from __future__ import annotations

import mmap
import os


class CaptureBuffer:
    """An anonymous file of fixed size, mapped here. Programs never see it, so it may serve one run after another."""

    def __init__(self, stdout_bytes: int, stderr_bytes: int) -> None:
        self._stdout_bytes = stdout_bytes
        size = stdout_bytes + stderr_bytes + 1
        self.fd = os.memfd_create("capture", os.MFD_CLOEXEC)
        try:
            # Allocated by us, so that kept output is never charged to a program.
            os.posix_fallocate(self.fd, 0, size)
            self._memory = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise

    def read(self, stdout_bytes: int, stderr_bytes: int) -> tuple[bytes, bytes]:
        """What was kept of the two streams."""
        start = self._stdout_bytes
        return self._memory[:stdout_bytes], self._memory[start : start + stderr_bytes]

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()
        os.close(self.fd)
