"""Every route by which something is read, and what of a contest it can show: a class of the visibility table.

``tests/architecture/test_contest_routes.py`` compares this with the routes of the application, so a new route must be
listed; ``tests/integration/contests/test_visibility.py`` requests those with a class as everybody in every phase.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fastapi import FastAPI, routing

from adjudge.contests.visibility import RouteClass

_C, _P = "/api/v1/contests/{contest}", "/contests/{slug}"

READ_ROUTES: Final[Mapping[str, RouteClass]] = {
    "/api/v1/contests": RouteClass.CONTEST,
    _C: RouteClass.CONTEST,
    f"{_C}/accounts": RouteClass.OPERATIONS,
    f"{_C}/awards": RouteClass.SCOREBOARD,
    f"{_C}/awards.json": RouteClass.SCOREBOARD,
    f"{_C}/balloons": RouteClass.BALLOONS,
    f"{_C}/blockers": RouteClass.OPERATIONS,
    f"{_C}/canned-answers": RouteClass.OPERATIONS,
    f"{_C}/clarifications": RouteClass.CLARIFICATIONS,
    f"{_C}/clarifications/unread": RouteClass.CLARIFICATIONS,
    f"{_C}/groups": RouteClass.TEAMS,
    f"{_C}/intervals": RouteClass.OPERATIONS,
    f"{_C}/invitations": RouteClass.OPERATIONS,
    f"{_C}/jury/submissions": RouteClass.OPERATIONS,
    f"{_C}/jury/submissions/{{number}}": RouteClass.OPERATIONS,
    f"{_C}/log": RouteClass.OPERATIONS,
    f"{_C}/materials": RouteClass.CONTEST,
    f"{_C}/materials/{{material}}": RouteClass.EDITORIALS,
    f"{_C}/organizations": RouteClass.TEAMS,
    f"{_C}/package": RouteClass.OPERATIONS,
    f"{_C}/participants": RouteClass.TEAMS,
    f"{_C}/participants/{{participant}}": RouteClass.TEAMS,
    f"{_C}/participants/{{participant}}/photo": RouteClass.TEAMS,
    f"{_C}/prints": RouteClass.PRINTS,
    f"{_C}/prints/{{print_number}}/pages": RouteClass.PRINTS,
    f"{_C}/prints/{{print_number}}/text": RouteClass.PRINTS,
    f"{_C}/problems": RouteClass.PROBLEMS,
    f"{_C}/problems/{{label}}": RouteClass.PROBLEMS,
    f"{_C}/problems/{{label}}/files/{{name:path}}": RouteClass.PROBLEMS,
    f"{_C}/resolver": RouteClass.SCOREBOARD,
    f"{_C}/results.tsv": RouteClass.SCOREBOARD,
    f"{_C}/roles": RouteClass.OPERATIONS,
    f"{_C}/scoreboard": RouteClass.SCOREBOARD,
    f"{_C}/scoreboard.csv": RouteClass.SCOREBOARD,
    f"{_C}/scoreboard.html": RouteClass.SCOREBOARD,
    f"{_C}/scoreboard.json": RouteClass.SCOREBOARD,
    f"{_C}/scoreboard/cells/{{participant}}/{{label}}": RouteClass.OTHER_SUBMISSIONS,
    f"{_C}/scoreboard/filters": RouteClass.TEAMS,
    f"{_C}/statistics": RouteClass.STATISTICS,
    f"{_C}/submissions": RouteClass.OTHER_SUBMISSIONS,
    f"{_C}/verdicts/unread": RouteClass.OWN_SUBMISSIONS,
    "/api/v1/judge-runs/{job_id}": RouteClass.OTHER_DETAILS,
    "/api/v1/judge-runs/{job_id}/attempts": RouteClass.OPERATIONS,
    "/api/v1/judge-runs/{job_id}/log": RouteClass.OPERATIONS,
    "/api/v1/judge-runs/{job_id}/results": RouteClass.OTHER_DETAILS,
    "/api/v1/me": RouteClass.STATISTICS,
    "/api/v1/ops/audit": RouteClass.OPERATIONS,
    "/api/v1/ops/jobs/{job_id}": RouteClass.OPERATIONS,
    "/api/v1/ops/queue": RouteClass.OPERATIONS,
    "/api/v1/ops/queues": RouteClass.OPERATIONS,
    "/api/v1/problems": RouteClass.STATISTICS,
    "/api/v1/problems/{problem}": RouteClass.PROBLEMS,
    "/api/v1/problems/{problem}/diff": RouteClass.EDITORIALS,
    "/api/v1/problems/{problem}/files/{name:path}": RouteClass.PROBLEMS,
    "/api/v1/problems/{problem}/revisions": RouteClass.EDITORIALS,
    "/api/v1/problems/{problem}/revisions/{number}": RouteClass.EDITORIALS,
    "/api/v1/problems/{problem}/revisions/{number}/files/{path:path}": RouteClass.EDITORIALS,
    "/api/v1/problems/{problem}/revisions/{number}/preview": RouteClass.EDITORIALS,
    "/api/v1/problems/{problem}/revisions/{number}/tests": RouteClass.EDITORIALS,
    "/api/v1/problems/{problem}/state": RouteClass.PROBLEMS,
    "/api/v1/ratings": RouteClass.STATISTICS,
    "/api/v1/rejudge-batches": RouteClass.OPERATIONS,
    "/api/v1/rejudge-batches/{batch_id}": RouteClass.OPERATIONS,
    "/api/v1/rejudge-batches/{batch_id}/preview": RouteClass.OPERATIONS,
    "/api/v1/rejudge-batches/{batch_id}/scoreboards": RouteClass.OPERATIONS,
    "/api/v1/submissions": RouteClass.OWN_SUBMISSIONS,
    "/api/v1/submissions/{submission_id}": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/archive": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/files": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/files/{name:path}": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/judge-runs": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/log": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/results": RouteClass.OTHER_DETAILS,
    "/api/v1/submissions/{submission_id}/source": RouteClass.OTHER_DETAILS,
    "/api/v1/users/{user}/rating": RouteClass.STATISTICS,
    **{
        f"{prefix}{path}": kind
        for prefix in ("/api/2023-06", "/api/2026-01")
        for path, kind in {
            "/contests": RouteClass.CONTEST,
            "/contests/{contest}": RouteClass.CONTEST,
            "/contests/{contest}/access": RouteClass.CONTEST,
            "/contests/{contest}/account": RouteClass.CONTEST,
            "/contests/{contest}/state": RouteClass.CONTEST,
            "/contests/{contest}/scoreboard": RouteClass.SCOREBOARD,
            "/contests/{contest}/submissions/{object_id}/files": RouteClass.OTHER_DETAILS,
            "/contests/{contest}/teams/{object_id}/photo": RouteClass.TEAMS,
            "/contests/{contest}/organizations/{object_id}/logo": RouteClass.TEAMS,
            "/contests/{contest}/problems/{label}/statement": RouteClass.PROBLEMS,
            "/contests/{contest}/problems/{label}/attachments/{name:path}": RouteClass.PROBLEMS,
            "/contests/{contest}/{collection}": RouteClass.STREAMS,
            "/contests/{contest}/{collection}/{object_id}": RouteClass.STREAMS,
        }.items()
    },
    "/api/v4/contests/{contest}/": RouteClass.CONTEST,
    "/api/v4/contests/{contest}/judgements": RouteClass.OTHER_SUBMISSIONS,
    "/api/v4/contests/{contest}/problems": RouteClass.PROBLEMS,
    "/api/v4/contests/{contest}/submissions/{number}/source-code": RouteClass.OTHER_DETAILS,
    "/": RouteClass.STATISTICS,
    "/contests": RouteClass.CONTEST,
    _P: RouteClass.CONTEST,
    f"{_P}/accounts": RouteClass.OPERATIONS,
    f"{_P}/add-participant": RouteClass.OPERATIONS,
    f"{_P}/awards": RouteClass.SCOREBOARD,
    f"{_P}/balloons": RouteClass.BALLOONS,
    f"{_P}/balloons/state": RouteClass.BALLOONS,
    f"{_P}/clarifications": RouteClass.CLARIFICATIONS,
    f"{_P}/clarifications/state": RouteClass.CLARIFICATIONS,
    f"{_P}/clarifications/{{clarification_id}}": RouteClass.CLARIFICATIONS,
    f"{_P}/groups": RouteClass.OPERATIONS,
    f"{_P}/import": RouteClass.OPERATIONS,
    f"{_P}/invitations": RouteClass.OPERATIONS,
    f"{_P}/jury": RouteClass.OPERATIONS,
    f"{_P}/jury/penalties": RouteClass.OPERATIONS,
    f"{_P}/jury/state": RouteClass.OPERATIONS,
    f"{_P}/jury/submissions": RouteClass.OPERATIONS,
    f"{_P}/jury/submissions/state": RouteClass.OPERATIONS,
    f"{_P}/jury/submissions/{{number}}": RouteClass.OPERATIONS,
    f"{_P}/jury/submissions/{{number}}/state": RouteClass.OPERATIONS,
    f"{_P}/organizations": RouteClass.OPERATIONS,
    f"{_P}/participants": RouteClass.TEAMS,
    f"{_P}/participants/{{code}}": RouteClass.OPERATIONS,
    f"{_P}/participants/{{code}}/photo": RouteClass.TEAMS,
    f"{_P}/prints": RouteClass.PRINTS,
    f"{_P}/prints/state": RouteClass.PRINTS,
    f"{_P}/prints/{{number}}": RouteClass.PRINTS,
    f"{_P}/problems": RouteClass.PROBLEMS,
    f"{_P}/problems/{{label}}": RouteClass.PROBLEMS,
    f"{_P}/register": RouteClass.CONTEST,
    f"{_P}/resolver": RouteClass.SCOREBOARD,
    f"{_P}/scoreboard": RouteClass.SCOREBOARD,
    f"{_P}/scoreboard/{{participant}}/{{label}}": RouteClass.OTHER_SUBMISSIONS,
    f"{_P}/settings": RouteClass.OPERATIONS,
    f"{_P}/settings/lifecycle": RouteClass.OPERATIONS,
    f"{_P}/settings/materials": RouteClass.OPERATIONS,
    f"{_P}/settings/problems": RouteClass.OPERATIONS,
    f"{_P}/settings/roles": RouteClass.OPERATIONS,
    f"{_P}/state": RouteClass.CONTEST,
    f"{_P}/statistics": RouteClass.STATISTICS,
    f"{_P}/submissions": RouteClass.OWN_SUBMISSIONS,
    f"{_P}/submissions/all": RouteClass.OTHER_SUBMISSIONS,
    f"{_P}/submissions/state": RouteClass.OWN_SUBMISSIONS,
    "/manage": RouteClass.PROBLEMS,
    "/manage/problems/{name}": RouteClass.PROBLEMS,
    "/me": RouteClass.STATISTICS,
    "/ops": RouteClass.OPERATIONS,
    "/ops/audit": RouteClass.OPERATIONS,
    "/ops/jobs/{job_id}": RouteClass.OPERATIONS,
    "/problems": RouteClass.STATISTICS,
    "/problems/{name}": RouteClass.PROBLEMS,
    "/ratings": RouteClass.STATISTICS,
    "/rejudge": RouteClass.OPERATIONS,
    "/rejudge/{batch_id}": RouteClass.OPERATIONS,
    "/rejudge/{batch_id}/state": RouteClass.OPERATIONS,
    "/submissions": RouteClass.OWN_SUBMISSIONS,
    "/submissions/{submission_id}": RouteClass.OTHER_DETAILS,
    "/submissions/{submission_id}/state": RouteClass.OTHER_DETAILS,
    "/users/{user}/rating": RouteClass.STATISTICS,
}
"""By path, for requests that end."""

STREAM_ROUTES: Final = frozenset(
    {
        f"{_C}/scoreboard/events",
        "/api/2023-06/contests/{contest}/event-feed",
        "/api/2026-01/contests/{contest}/event-feed",
        "/api/v1/events",
        "/api/v1/me/events",
        "/api/v1/submissions/{submission_id}/events",
    }
)
"""Event streams, which do not end."""

OTHER_ROUTES: Final = (
    r"/api/v1/(chains|runs|executors|evaluations|executions|imports|invitations|languages|login|secrets|webhooks)(/.*)?",
    r"/api/v1/(docs|openapi\.json|version|health/(live|ready)|me/(sessions|tokens)|users|users/\{user_id\})",
    r"/api/v1/ops/(config|dead-letters|dead-letters/\{letter_id\}|health|judging-pauses|outbox|processes|status|workers)",
    r"/(chains|runs|judge0)(/.*)?",
    r"/api(/2023-06|/2026-01)?/?",
    r"/api(/v4)?/(info|user|users|version)",
    r"/(contests/new|contests/import|forgot-password|login|register|reset-password|metrics|setting|setting/.*|static/.*|\{path:path\})",
    r"/manage/(imports/.*|problems/\{name\}/(diff|revisions/\{number\}))",
    r"/me/(password|tokens|webhooks.*)",
    r"/ops/(control|dead-letters|find|secrets|state)",
)
"""Paths that show nothing of contests to anybody but operators and the owners of chains, imports and problems."""

_ALIAS: Final = re.compile(r"/api(/v4)?(?=/contests(/|$)|/?$)")
"""Prefixes of the Contest API whose routes are those of its default version."""

LIST_QUERIES: Final[Mapping[str, Sequence[str]]] = {
    "/api/v1/submissions": ("status=pending", "status=accepted", "verdict=AC", "problem=sum", "problem=zirkon"),
    "/api/v1/problems": ("solved=true", "q=zirkon", "q=malachite"),
    "/problems": ("q=zirkon", "q=malachite"),
    "/submissions": ("problem=sum",),
    f"{_C}/scoreboard": ("view=jury", "limit=1"),
}
"""Filters that could tell of hidden objects."""


def all_routes(app: FastAPI) -> list[tuple[str, str]]:
    """The methods and paths of the application."""
    found = set()
    for route in routing.iter_route_contexts(app.routes):
        methods = getattr(route.original_route, "methods", None) or ()
        found |= {(method, str(route.path)) for method in methods if method != "HEAD"}
    return sorted(found)


def _served(path: str) -> str:
    """The path that an alias stands for: one of DOMjudge, else of the default version."""
    of_domjudge = _ALIAS.sub("/api/v4", path)
    return of_domjudge if of_domjudge in READ_ROUTES else _ALIAS.sub("/api/2023-06", path)


def unlisted(app: FastAPI) -> set[str]:
    """The paths that are read and are in none of the lists. Aliases of the Contest API count as what they stand for."""
    listed = {_served(path) for method, path in all_routes(app) if method == "GET"}
    paths = listed - READ_ROUTES.keys() - STREAM_ROUTES
    return {path for path in paths if not any(re.fullmatch(pattern, path) for pattern in OTHER_ROUTES)}


def expand(template: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The path with every combination of the values of its parameters, also with the queries of lists."""
    names = re.findall(r"\{(\w+)(?::path)?\}", template)
    for chosen in itertools.product(*(values[name] for name in names)):
        path = template
        for name, value in zip(names, chosen, strict=True):
            path = re.sub(rf"\{{{name}(:path)?\}}", value, path)
        yield path
        yield from (f"{path}?{query}" for query in LIST_QUERIES.get(template, ()))
