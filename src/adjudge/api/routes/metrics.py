"""The version and the metrics of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge import __version__
from adjudge.api.auth import client_address, current_viewer
from adjudge.api.routing import ERROR_RESPONSES, api_router
from adjudge.api.schema.base import VersionRead
from adjudge.domain.errors import Forbidden
from adjudge.domain.permissions import Permission
from adjudge.observe import metrics
from adjudge.observe.metrics_access import MetricsAccess

_PROXY_HEADERS: Final = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")
"""Headers that proxies add to the requests that they forward."""


def router() -> APIRouter:
    routes = api_router("health")

    @routes.get("/version", summary="Get the version")
    async def version() -> VersionRead:
        return VersionRead(version=__version__)

    return routes


def metrics_router(
    render: Callable[[], Awaitable[bytes]], access: MetricsAccess, *, has_proxy: bool = False
) -> APIRouter:
    """``/metrics``, for the networks and the token that the settings allow, and for users with ``ops:read``.

    Behind a proxy every request comes from the address of the proxy, so with a proxy the address does not grant access.
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
        is_near = not has_proxy and _is_direct(request) and access.allows_address(client_address(request))
        if not is_near and not access.allows_token(request.headers.get("Authorization", "")):
            viewer = await current_viewer(request)
            if access.networks and viewer.user_id is None:
                raise Forbidden(
                    "Metrics require ops:read, the metrics token, or a direct request from an allowed network; see "
                    "server.metrics_networks and server.metrics_token."
                )
            viewer.require(Permission.OPS_READ)
        return Response(await render(), media_type=metrics.CONTENT_TYPE)

    return routes


def _is_direct(request: Request) -> bool:
    """Whether no proxy has forwarded the request."""
    return not any(name in request.headers for name in _PROXY_HEADERS)
