"""Health: *live* means that the process responds, *ready* that all required components are available."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request

from adjudge.api.routing import api_router
from adjudge.api.schema.base import LivenessRead, ReadinessRead
from adjudge.domain.errors import Unavailable
from adjudge.services import health
from adjudge.services.health import Check


def router(checks: Mapping[str, Check]) -> APIRouter:
    """Routes for load balancers and supervisors."""
    routes = api_router("health", "/health")

    @routes.get("/live", summary="Liveness probe")
    async def live() -> LivenessRead:
        return LivenessRead()

    @routes.get("/ready", summary="Readiness probe")
    async def ready(request: Request) -> ReadinessRead:
        if request.app.state.streams.are_closing:
            raise Unavailable("Not ready: shutting down.", silent="")
        taken = await health.check_components(checks)
        silent = [item.name for item in taken if not item.is_well and item.name not in health.DISPENSABLE]
        if silent:
            raise Unavailable(f"Not ready: {', '.join(silent)} unreachable.", silent=",".join(silent))
        return ReadinessRead(checks={component.name: component.status for component in taken})

    return routes
