"""What is running, and its figures."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from adjudge import __version__
from adjudge.api.wire.base import Version
from adjudge.observe import metrics


def router() -> APIRouter:
    """The version, for people and clients."""
    routes = APIRouter(tags=["about"])

    @routes.get("/version", summary="What is running")
    async def version() -> Version:
        return Version(version=__version__)

    return routes


def metrics_router() -> APIRouter:
    """``/metrics``, where scrapers look for it."""
    routes = APIRouter(tags=["about"])

    @routes.get("/metrics", summary="Figures in the text format of Prometheus", response_class=Response)
    async def read_metrics() -> Response:
        return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)

    return routes
