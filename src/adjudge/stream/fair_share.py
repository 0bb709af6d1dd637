"""Whose turn it is: higher bands first, lower ones never starved."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Final

from adjudge.domain.priority import BANDS

_ROUND: Final = 16
"""Places in a round. Each lower band has one of its own; all others go to the highest band that has something."""


class FairShare:
    """Deals out places of reads. A reader keeps one for as long as it reads.

    However busy the higher bands are, each lower band gets one place in sixteen; a place that its band has no use for
    goes the ordinary way, so that none is wasted.
    """

    def __init__(self) -> None:
        spacing = _ROUND // len(BANDS)
        places: list[int | None] = [None] * _ROUND
        for band in BANDS[1:]:
            places[band * spacing] = band
        self._places = cycle(places)

    def reserved_quota(self, limit: int) -> dict[int, int]:
        """Of the next ``limit`` places, how many are kept for which band."""
        kept = dict.fromkeys(BANDS, 0)
        for band in islice(self._places, limit):
            if band is not None:
                kept[band] += 1
        return kept
