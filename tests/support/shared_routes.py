"""Applications that share their routes, because building routes takes longer than most tests.

Everything else of an application belongs to its test. Shared routes serve one application at a time and look up its
services when they are called; a second application at the same time gets routes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from fastapi import FastAPI
from starlette.routing import BaseRoute

from adjudge.api.app import build_routes, create_app
from adjudge.api.container import Services
from adjudge.settings import Settings
from adjudge.settings.sections import AccountsSettings
from adjudge.web.app import install


class _Current:
    """The services of the application that uses the shared routes now."""

    services: Services | None = None


class _Lookup:
    """Stands for one service of the current application; ``known`` attributes are never looked up."""

    def __init__(self, name: str, **known: object) -> None:
        self._name = name
        vars(self).update(known)

    def _get(self) -> Any:
        return getattr(_Current.services, self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._get(), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._get())

    def __getitem__(self, key: str) -> Any:
        return self._get()[key]


_page_routes: dict[AccountsSettings, Sequence[BaseRoute]] = {}
"""By the settings that pages read when they are built."""


def lookup_services(settings: Settings | None = None) -> Services:
    """Services that are looked up when a route is called; ``settings`` are what pages read when they are built."""
    found: dict[str, Any] = {item.name: _Lookup(item.name) for item in fields(Services)}
    if settings is not None:
        found["logins"] = _Lookup("logins", settings=settings.accounts)
    return cast("Services", SimpleNamespace(**found))


@cache
def _routes() -> Sequence[BaseRoute]:
    return build_routes(lookup_services())


@contextmanager
def create_shared_app(services: Services) -> Iterator[FastAPI]:
    """``create_app`` with shared routes."""
    if _Current.services is not None:
        yield create_app(services)
        return
    _Current.services = services
    try:
        yield create_app(services, _routes())
    finally:
        _Current.services = None


def add_pages(app: FastAPI, services: Services) -> None:
    """``install`` with shared routes."""
    if _Current.services is not services:
        install(app, services)
        return
    accounts = services.settings.accounts
    if accounts not in _page_routes:
        bare = FastAPI(openapi_url=None)
        install(bare, lookup_services(services.settings))
        _page_routes[accounts] = bare.router.routes
    app.router.routes.extend(_page_routes[accounts])
