"""Health: *live* says that the process answers, *ready* that everything it needs does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fastapi import APIRouter

from adjudge.api.wire.base import Live, Ready
from adjudge.domain.errors import Unavailable
from adjudge.observe.logs import get_logger

_PATIENCE_SEC: Final = 2.0

log = get_logger(__name__)


def router(checks: Mapping[str, Callable[[], Awaitable[None]]]) -> APIRouter:
    """Routes for load balancers and supervisors."""
    routes = APIRouter(prefix="/health", tags=["health"])

    @routes.get("/live", summary="Whether the process answers")
    async def live() -> Live:
        return Live()

    @routes.get("/ready", summary="Whether every part it needs answers")
    async def ready() -> Ready:
        answers = await asyncio.gather(*(_fails(name, check) for name, check in checks.items()))
        silent = [name for name, fails in zip(checks, answers, strict=True) if fails]
        if silent:
            raise Unavailable(f"Not ready: no answer from {', '.join(silent)}.", silent=",".join(silent))
        return Ready(checks=dict.fromkeys(checks, "ok"))

    return routes


async def _fails(name: str, check: Callable[[], Awaitable[None]]) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SEC):
            await check()
    except Exception as error:  # noqa: BLE001  # whatever a part died of, the answer is the same: it is not ready
        log.warning("health.check_failed", check=name, error=type(error).__name__)
        return True
    return False
