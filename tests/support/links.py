"""Checks addresses that pages use against the routes that there are: the path, the method and every query parameter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from re import Pattern
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from fastapi import FastAPI, routing
from fastapi.dependencies.models import Dependant
from starlette.routing import compile_path

from adjudge import settings as settings_source
from adjudge.api.app import OPENAPI_PATH, build_routes
from adjudge.api.routing import API_ROOT
from adjudge.web.app import install
from tests.support.shared_routes import lookup_services

EVERYWHERE: Final = frozenset({"done"})
"""Read by every page: the message about the last action, shown once."""


@dataclass(frozen=True)
class KnownRoute:
    """A route, and the query parameters that it reads."""

    path: Pattern[str]
    methods: frozenset[str]
    query: frozenset[str]


@cache
def known_routes() -> tuple[KnownRoute, ...]:
    """Every route of the API and of the pages, in the order in which they are tried."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=OPENAPI_PATH)
    services = lookup_services(settings_source.load({}, environ={}))
    app.router.routes.extend(build_routes(services))
    install(app, services)
    return tuple(_known(app))


def _known(app: FastAPI) -> Iterator[KnownRoute]:
    for route in routing.iter_route_contexts(app.routes):
        if route.path is None or route.path == "/{path:path}":
            continue  # the page that says that there is no such page
        original = route.original_route
        query = _query_of(original.dependant) if isinstance(original, routing.APIRoute) else frozenset()
        yield KnownRoute(compile_path(route.path)[0], frozenset(route.methods or ()), query)


def _query_of(dependant: Dependant) -> frozenset[str]:
    own = {field.alias for field in dependant.query_params}
    return frozenset(own.union(*(_query_of(inner) for inner in dependant.dependencies)))


def problem(method: str, address: str) -> str | None:
    """The error in an internal URL, or None."""
    parts = urlsplit(address)
    routes = [route for route in known_routes() if route.path.match(parts.path)]
    route = next((route for route in routes if method in route.methods), None)
    if route is None:
        return f"no route for {method} {parts.path}"
    unread = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)} - route.query
    unread -= frozenset() if parts.path.startswith(API_ROOT) else EVERYWHERE
    return f"{method} {parts.path} does not read {', '.join(sorted(unread))}" if unread else None
