"""The ICPC Contest API, under its version prefixes and the addresses that clients try without one.

``docs/reference/contest-api.md`` says what is supported. ``/api/v1`` is the API of Adjudge itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from adjudge.api.routes.ccs.collections import collection_router
from adjudge.api.routes.ccs.routing import PREFIXES
from adjudge.services.ccs import CcsService


def routers(service: CcsService) -> Sequence[APIRouter]:
    """The routers of all prefixes. Their generic routes match every collection: add those of other modules before."""
    return [collection_router(prefix, version, service) for prefix, version in PREFIXES.items()]
