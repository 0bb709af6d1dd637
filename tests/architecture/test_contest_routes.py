"""Every route that reads is in the table of what it shows of contests, so that the visibility tests request it."""

from __future__ import annotations

import re
from functools import cache

from fastapi import FastAPI

from adjudge import settings as settings_source
from adjudge.api.app import build_routes
from adjudge.web.app import install
from tests.support.contest_routes import LIST_QUERIES, OTHER_ROUTES, READ_ROUTES, STREAM_ROUTES, all_routes, unlisted
from tests.support.shared_routes import lookup_services


@cache
def application() -> FastAPI:
    """All routes of the API and the pages, without services."""
    app = FastAPI(openapi_url=None)
    app.router.routes.extend(build_routes(lookup_services()))
    install(app, lookup_services(settings_source.load({}, environ={})))
    return app


def test_every_route_that_reads_is_in_the_visibility_table() -> None:
    assert unlisted(application()) == set(), (
        "add these paths to tests/support/contest_routes.py, with the class of the visibility table that they belong to"
    )


def test_table_has_no_route_that_does_not_exist() -> None:
    paths = {path for method, path in all_routes(application()) if method == "GET"}
    assert (READ_ROUTES.keys() | STREAM_ROUTES | LIST_QUERIES.keys()) - paths == set()


def test_routes_of_contests_are_never_listed_as_showing_nothing() -> None:
    of_contests = {path for _, path in all_routes(application()) if re.search(r"/contests/\{", path)}
    assert not {path for path in of_contests if any(re.fullmatch(pattern, path) for pattern in OTHER_ROUTES)}
