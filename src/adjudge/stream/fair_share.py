"""Fair share: higher bands first, lower bands never starved."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Final

from adjudge.domain.priority import BANDS

_ROUND: Final = 16
"""Slots per round. Each lower band has one reserved; the others go to the highest band with messages."""


class FairShare:
    """Allocates the slots of reads; one instance per reader.

    However busy the higher bands are, each lower band gets one slot in sixteen; a slot that its band does not need is
    used by the others.
    """

    def __init__(self) -> None:
        spacing = _ROUND // len(BANDS)
        places: list[int | None] = [None] * _ROUND
        for band in BANDS[1:]:
            places[band * spacing] = band
        self._places = cycle(places)

    def reserved_quota(self, limit: int) -> dict[int, int]:
        """How many of the next ``limit`` slots are reserved for which band."""
        kept = dict.fromkeys(BANDS, 0)
        for band in islice(self._places, limit):
            if band is not None:
                kept[band] += 1
        return kept
