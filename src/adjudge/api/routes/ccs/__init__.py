"""The ICPC Contest API, under its version prefixes and the addresses that clients try without one.

``docs/reference/contest-api.md`` says what is supported. ``/api/v1`` is the API of Adjudge itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from adjudge.api.routes.ccs.changes import change_router
from adjudge.api.routes.ccs.collections import collection_router
from adjudge.api.routes.ccs.files import file_router
from adjudge.api.routes.ccs.routing import PREFIXES
from adjudge.services.ccs import CcsService
from adjudge.services.ccs_changes import CcsChangeService
from adjudge.services.ccs_files import CcsFileService


def routers(service: CcsService, changes: CcsChangeService, files: CcsFileService) -> Sequence[APIRouter]:
    """The routers of all prefixes. Their generic routes match every collection: add those of other modules before."""
    return [
        *(change_router(prefix, version, changes) for prefix, version in PREFIXES.items()),
        *(file_router(prefix, files) for prefix in PREFIXES),
        *(collection_router(prefix, version, service) for prefix, version in PREFIXES.items()),
    ]
