"""The application factory: adds routes, error handlers and middleware to the given services."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from adjudge import __version__
from adjudge.api import errors
from adjudge.api.auth import CheckUpload, known_by, make_authenticator
from adjudge.api.cached_problems import CachedProblems
from adjudge.api.container import Services
from adjudge.api.middleware import RequestLimits, RequestMiddleware, RouteIndex
from adjudge.api.openapi import build_openapi
from adjudge.api.routes import (
    account,
    ccs,
    chain_run_files,
    chain_runs,
    chains,
    contest_accounts,
    contest_balloons,
    contest_clarifications,
    contest_groups,
    contest_jury,
    contest_materials,
    contest_package,
    contest_participants,
    contest_photos,
    contest_prints,
    contest_problems,
    contest_scoreboard,
    contest_submissions,
    contest_verdicts,
    contests,
    domjudge,
    domjudge_contests,
    evaluations,
    events,
    executions,
    health,
    judge0,
    judge_runs,
    languages,
    login,
    metrics,
    oidc,
    ops,
    problem_imports,
    problem_revisions,
    problems,
    ratings,
    rejudge,
    secrets,
    submission_files,
    submissions,
    users,
    webhooks,
)
from adjudge.api.routes.ccs import event_feed
from adjudge.api.routing import API_ROOT, ERROR_RESPONSES
from adjudge.api.sse import OpenStreams
from adjudge.domain.contest import ContestRole
from adjudge.domain.permissions import Permission
from adjudge.observe.metrics_access import MetricsAccess
from adjudge.services.contest_access import ContestAccess
from adjudge.services.domjudge_problems import IMPORT_WAIT_SEC
from adjudge.services.viewer import Viewer

OPENAPI_PATH: Final = f"{API_ROOT}/openapi.json"
_UPLOADS: Final = re.compile(
    rf"({API_ROOT}/problems:import|{API_ROOT}/contests:import|{API_ROOT}/files|/manage/import|/contests/import|{API_ROOT}/evaluations(/[^/]+/records)?"
    rf"|{API_ROOT}/contests/[^/]+/materials/[^/]+|/contests/[^/]+/settings/materials"
    r"|/api(/v4)?/contests/[^/]+/(problems|problemset))$"
)
"""Paths of packages, files of chain runs, materials and records, which are streamed. Other bodies are in memory."""
_WAITING_IMPORTS: Final = re.compile(
    rf"(/api(/v4)?/contests/[^/]+/problems|{API_ROOT}/contests:import|/contests/import)$"
)
_MATERIALS_PAGE: Final = re.compile(r"/contests/([^/]+)/settings/materials")
_UPLOAD_PAGES: Final = {"/manage/import": Permission.PROBLEM_WRITE, "/contests/import": Permission.CONTEST_CREATE}
_CORS_HEADERS: Final = [
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "Last-Event-ID",
    "Traceparent",
    "X-Auth-Token",
    "X-Request-Id",
]

_NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
"""Metrics, logs and trace ids are those of ``observe``; FastAPI would look for its own providers at every request."""


def create_app(services: Services, routes: Sequence[BaseRoute] = ()) -> FastAPI:
    """Build the application; ``routes`` may be the result of an earlier ``build_routes``."""
    app = _new_fastapi()
    settings = services.settings
    app.state.streams = OpenStreams()
    app.state.public_url = settings.server.public_url
    app.state.authenticate = make_authenticator(
        services.credentials, services.basic_auth, visitors_may_read=settings.accounts.visitors_may_read
    )
    app.state.contest_only = services.contest_only
    app.router.routes.extend(routes or build_routes(services))
    has_proxy = bool(settings.server.public_url or settings.server.trusted_proxies)
    access = MetricsAccess.of(settings.server.metrics_networks, settings.server.metrics_token.reveal())
    app.router.routes.extend(metrics.metrics_router(services.system_metrics.render, access, has_proxy=has_proxy).routes)
    errors.install_error_handlers(app)
    _add_middleware(app, services)
    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    return app


def build_routes(services: Services) -> Sequence[BaseRoute]:
    """Build all routes under ``API_ROOT``, which is most of the work of building an application."""
    s = services
    routers = (
        submissions.router(s.languages, s.submissions, s.submitter),
        submission_files.router(s.sources),
        problems.router(s.problems),
        problem_imports.router(s.imports, s.connections),
        problem_revisions.router(s.problems, s.revisions, s.imports),
        events.router(s.events, s.user_events, s.connections),
        judge_runs.router(s.submissions),
        executions.router(s.executions),
        evaluations.router(s.evaluations),
        chain_runs.router(s.chain_runs, s.connections),
        chains.router(s.chains, s.chain_runs, s.chain_triggers),
        contests.router(s.contests, s.contest_lifecycle),
        contest_clarifications.router(s.clarifications),
        contest_balloons.router(s.balloons),
        contest_prints.router(s.prints),
        contest_materials.router(s.contest_materials),
        contest_package.router(s.contest_exports, s.contest_imports),
        contest_participants.router(
            s.contest_registrations, s.contest_participants, s.contest_invitations, s.team_imports
        ),
        contest_photos.router(s.team_photos),
        contest_groups.router(s.contest_groups),
        contest_accounts.router(s.contest_accounts, s.contest_tokens),
        contest_submissions.router(s.visible_submissions),
        contest_verdicts.router(s.contests, s.own_contests),
        contest_jury.router(s.contest_submissions, s.jury_submissions, s.judging_pauses),
        contest_problems.router(s.contest_problems),
        ratings.router(s.ratings),
        contest_scoreboard.router(s.scoreboards, s.scoreboard_exports, s.awards, s.contest_statistics, s.connections),
        rejudge.router(s.languages, s.rejudges),
        webhooks.router(s.webhooks),
        languages.router(s.language_service),
        chain_run_files.router(s.run_files),
        health.router(s.checks),
        login.router(s.credentials, s.accounts, s.logins),
        oidc.router(s.logins),
        account.router(s.accounts),
        users.router(s.users),
        ops.router(s.ops, s.judging_control),
        secrets.router(s.secrets),
        metrics.router(),
        judge0.router(s.judge0),
        *domjudge.routers(s.domjudge),
        *domjudge_contests.routers(s.domjudge, s.domjudge_problems, s.contest_materials),
        *event_feed.event_feed_routers(s.ccs_feed, s.connections),
        *ccs.routers(s.ccs, s.ccs_changes, s.ccs_files),
    )
    return [route for router in routers for route in router.routes]


def _new_fastapi() -> FastAPI:
    app = FastAPI(
        title="Adjudge",
        version=__version__,
        summary="Online judge and job chain engine.",
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        responses=ERROR_RESPONSES,
        telemetry=_NO_TELEMETRY,
    )
    app.router.middleware_stack = RouteIndex(app.router)
    return app


def _add_middleware(app: FastAPI, services: Services) -> None:
    """Add ``RequestMiddleware`` around the application, and CORS for the origins in the settings."""
    server = services.settings.server
    origins = [origin.strip() for origin in server.cors_origins.split(",") if origin.strip()]
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=_CORS_HEADERS,
            expose_headers=["ETag", "Location", "Retry-After", "X-Request-Id"],
            allow_credentials=False,  # pages of other origins use an API token, never the session cookie
        )
    app.add_middleware(
        RequestMiddleware,
        new_request_id=services.new_id,
        bounds=RequestLimits(
            server.anonymous_body_limit_bytes,
            server.body_limit_bytes,
            server.upload_limit_bytes,
            server.request_timeout_sec,
            _UPLOADS,
            _WAITING_IMPORTS,
            IMPORT_WAIT_SEC,
        ),
        is_known=known_by(services.credentials, services.basic_auth, _upload_check(services.contest_materials.access)),
        streams=app.state.streams,
        fast_response=CachedProblems(
            API_ROOT,
            services.problems,
            services.credentials,
            services.contest_only,
            visitors_may_read=services.settings.accounts.visitors_may_read,
        ).respond,
        is_https=server.public_url.startswith("https:"),
    )


def _upload_check(access: ContestAccess) -> CheckUpload:
    """Who may send files with the forms of pages."""

    async def check(path: str, viewer: Viewer) -> None:
        if path in _UPLOAD_PAGES:
            viewer.require(_UPLOAD_PAGES[path])
        elif found := _MATERIALS_PAGE.fullmatch(path):
            await access.find_as(viewer, found[1], ContestRole.ORGANISER)

    return check
