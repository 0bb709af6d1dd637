"""Limits of packages: how much a package, with all archives inside it, may unpack to."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.limits import MIB
from adjudge.packages.findings import package_error


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Maximum size of a package, so that a small archive cannot fill the disk."""

    entries: int = 50_000
    total_bytes: int = 4096 * MIB
    file_bytes: int = 1024 * MIB
    ratio: int = 200
    """Maximum compression ratio, above ``ratio_floor_bytes``."""
    ratio_floor_bytes: int = 256 * MIB

    def unpacked_bytes(self, packed_bytes: int) -> int:
        """What an archive of this size may unpack to."""
        return min(self.total_bytes, max(self.ratio_floor_bytes, packed_bytes * self.ratio))


class UnpackBudget:
    """The files and bytes that may still be unpacked: one budget for a package and all archives inside it.

    What was unpacked from an archive that was refused counts too.
    """

    def __init__(self, limits: ArchiveLimits | None = None, packed_bytes: int | None = None) -> None:
        self.limits = limits or ArchiveLimits()
        self._entries = self.limits.entries
        self._bytes = self.limits.total_bytes if packed_bytes is None else self.limits.unpacked_bytes(packed_bytes)

    def take_entries(self, count: int) -> None:
        self._entries -= count
        if self._entries < 0:
            message = f"has more than {self.limits.entries} files."
            raise package_error("", message, "Remove what the problem does not need.")

    def take_bytes(self, count: int, name: str) -> None:
        self._bytes -= count
        if self._bytes < 0:
            raise package_error(name, "unpacks to more than a package may.", "Make the test data smaller.")
