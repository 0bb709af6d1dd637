"""What is running, and its figures."""

from __future__ import annotations

import ipaddress
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge import __version__
from adjudge.api.viewer import address_of, viewer_of
from adjudge.api.wire.base import Version
from adjudge.domain.access import Permission
from adjudge.domain.errors import Forbidden
from adjudge.observe import metrics


def router() -> APIRouter:
    """The version, for people and clients."""
    routes = APIRouter(tags=["about"])

    @routes.get("/version", summary="What is running")
    async def version() -> Version:
        return Version(version=__version__)

    return routes


def metrics_router(access: Literal["loopback", "token", "open"]) -> APIRouter:
    """``/metrics``, where scrapers look for it, for whom the settings say."""
    routes = APIRouter(tags=["about"])

    text = {"description": "The figures.", "content": {"text/plain": {"schema": {"type": "string"}}}}

    @routes.get(
        "/metrics",
        summary="Figures in the text format of Prometheus",
        response_class=Response,
        responses={200: text},
    )
    async def read_metrics(request: Request) -> Response:
        if access == "token":
            (await viewer_of(request)).require(Permission.OPS_READ)
        elif access == "loopback" and not _is_loopback(address_of(request)):
            raise Forbidden("Figures are for this machine alone; the setting server.metrics_access changes that.")
        return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)

    return routes


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
