"""Priority bands: the four queues of jobs, 0 served first."""

from __future__ import annotations

from typing import Final

BANDS: Final = (0, 1, 2, 3)
LOWEST_BAND: Final = BANDS[-1]
DEFAULT_BAND: Final = 2
"""The band of a chain node that names no priority."""


def band_of(priority: int) -> int:
    """Map a priority to its band; a value out of range goes to the nearest band."""
    return min(max(priority, BANDS[0]), LOWEST_BAND)
