"""Applications that share their routes: building them anew takes longer than most tests do with them.

An application is a test's own in everything else. Shared routes serve one at a time, and find its parts when they are
asked; whoever comes while another is at work gets routes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import cast

from fastapi import FastAPI
from starlette.routing import BaseRoute

from adjudge.api.app import build_routes, create_app
from adjudge.api.parts import Parts
from adjudge.settings.sections import AccountsSettings
from adjudge.web.app import install


class _CurrentServices:
    """Looks like the parts of the application that is at work."""

    def __init__(self) -> None:
        self.parts: Parts | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self.parts, name)


_served = _CurrentServices()
_page_routes: dict[AccountsSettings, Sequence[BaseRoute]] = {}
"""By the settings that pages ask for when they are built, and keep."""


@cache
def _routes() -> Sequence[BaseRoute]:
    return build_routes(cast("Parts", _served))


@contextmanager
def create_shared_app(parts: Parts) -> Iterator[FastAPI]:
    """``create_app``, quicker."""
    if _served.parts is not None:
        yield create_app(parts)
        return
    _served.parts = parts
    try:
        yield create_app(parts, _routes())
    finally:
        _served.parts = None


def add_pages(app: FastAPI, parts: Parts) -> None:
    """``install``, quicker."""
    if _served.parts is not parts:
        install(app, parts)
        return
    accounts = parts.settings.accounts
    if accounts not in _page_routes:
        bare = FastAPI(openapi_url=None)
        install(bare, cast("Parts", _served))
        _page_routes[accounts] = bare.router.routes
    app.router.routes.extend(_page_routes[accounts])
