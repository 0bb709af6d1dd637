"""Admission, as routes and pages ask for it; the rules are the gate's.

::

    admitted = await admit(parts, viewer, address=address, count=1, languages=["cpp"])
    …NewJob(priority=admitted.band, delay_ms=admitted.delay_ms)

Refusals are raised: ``RateLimited``, ``QuotaExhausted``, ``InFlightCap``, ``QueueFull`` (all ``TooMany``, 429) and
``NoWorkerForLanguage`` (503), each with ``Retry-After``. Ask after everything else about the request was found good,
and only for what is new: an answer given again for an idempotency key takes no token.
"""

from __future__ import annotations

from collections.abc import Collection

from adjudge.api.gate import AdmissionDecision
from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer

__all__ = ["AdmissionDecision", "admit"]


async def admit(
    parts: Parts,
    viewer: Viewer,
    *,
    address: str,
    count: int,
    languages: Collection[str],
) -> AdmissionDecision:
    """Let ``count`` new jobs in ``languages`` in, from ``address``, or say why not."""
    return await parts.gate.admit(viewer, address=address, count=count, languages=languages)
