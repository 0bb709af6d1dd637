"""The version and the metrics of the server."""

from __future__ import annotations

import ipaddress
from typing import Final, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge import __version__
from adjudge.api.auth import client_address, current_viewer
from adjudge.api.routing import ERROR_RESPONSES, api_router
from adjudge.api.schema.base import VersionRead
from adjudge.domain.errors import Forbidden
from adjudge.domain.permissions import Permission
from adjudge.observe import metrics

_PROXY_HEADERS: Final = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")
"""Headers that proxies add to the requests that they forward."""


def router() -> APIRouter:
    routes = api_router("health")

    @routes.get("/version", summary="Get the version")
    async def version() -> VersionRead:
        return VersionRead(version=__version__)

    return routes


def metrics_router(access: Literal["loopback", "token", "open"], *, has_proxy: bool = False) -> APIRouter:
    """``/metrics``, for the clients that the setting allows and for users with ``ops:read``.

    Behind a proxy on the same host every request comes from a loopback address, so with a proxy that does not grant
    access.
    """
    routes = APIRouter(tags=["about"], responses=ERROR_RESPONSES)

    text = {"description": "Metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}

    @routes.get(
        "/metrics",
        summary="Metrics in Prometheus text format",
        response_class=Response,
        responses={200: text},
    )
    async def read_metrics(request: Request) -> Response:
        is_free = access == "open" or (access == "loopback" and not has_proxy and _is_local_request(request))
        if not is_free:
            viewer = await current_viewer(request)
            if access == "loopback" and viewer.user_id is None:
                raise Forbidden(
                    "Metrics require ops:read, or a direct request from this host; see server.metrics_access."
                )
            viewer.require(Permission.OPS_READ)
        return Response(metrics.render_metrics(), media_type=metrics.CONTENT_TYPE)

    return routes


def _is_local_request(request: Request) -> bool:
    """Whether the request comes from this host and was not forwarded by a proxy."""
    if any(name in request.headers for name in _PROXY_HEADERS):
        return False
    try:
        return ipaddress.ip_address(client_address(request)).is_loopback
    except ValueError:
        return False
