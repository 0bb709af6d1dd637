"""Adds the pages to the application that ``api`` created."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.responses import Response

from adjudge.api.container import Services
from adjudge.domain.errors import NotFound
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import PageRenderer, page_router
from adjudge.web.routes import (
    account,
    api_reference,
    chains,
    contest_accounts,
    contest_balloons,
    contest_clarifications,
    contest_groups,
    contest_import,
    contest_invitations,
    contest_jury,
    contest_jury_submissions,
    contest_lifecycle,
    contest_materials,
    contest_package,
    contest_participants,
    contest_photos,
    contest_prints,
    contest_problem_settings,
    contest_problems,
    contest_registration,
    contest_results,
    contest_scoreboard,
    contest_settings,
    contest_visible_submissions,
    contests,
    ops,
    ops_control,
    password_reset,
    preferences,
    problem_admin,
    problems,
    ratings,
    rejudge,
    secrets,
    submissions,
    webhooks,
)


def install(app: FastAPI, services: Services) -> None:
    """Add every page, the static files, and a page for unknown paths."""
    pages = PageRenderer()
    problem_page = problems.ProblemPageRenderer(
        pages,
        services.problems,
        services.problem_stats,
        services.language_service,
        services.submissions,
        services.admission,
    )
    contest_pages = ContestPageRenderer(pages, services.clarifications, services.own_contests)
    for router in (
        pages.assets.router(),
        password_reset.router(pages, services.password_resets),
        preferences.router(pages),
        api_reference.router(pages),
        account.router(pages, services.accounts, services.logins, services.problems),
        webhooks.router(pages, services.webhooks),
        problems.router(problem_page),
        submissions.router(
            pages,
            problem_page,
            services.submissions,
            services.submitter,
            sources=services.sources,
            languages=services.languages,
            users=services.users,
            ops=services.ops,
        ),
        contest_package.router(pages, services.contest_imports),
        contest_settings.router(contest_pages, services.contests, services.languages),
        contest_problem_settings.router(contest_pages, services.contests, services.problems),
        contest_lifecycle.router(contest_pages, services.contests, services.contest_lifecycle),
        contests.router(contest_pages, services.contests, services.languages, services.contest_materials),
        contest_problems.router(
            contest_pages, problem_page, services.contest_problems, services.own_contests, services.submitter
        ),
        contest_scoreboard.router(contest_pages, services.scoreboards, services.scoreboard_exports),
        contest_results.router(contest_pages, services.awards, services.contest_statistics),
        contest_photos.router(contest_pages, services.team_photos),
        contest_registration.router(contest_pages, services.contest_registrations),
        contest_participants.router(contest_pages, services.contest_participants, services.contest_groups),
        contest_groups.router(contest_pages, services.contest_groups),
        contest_invitations.router(contest_pages, services.contest_invitations),
        contest_accounts.router(contest_pages, services.contest_accounts),
        contest_import.router(contest_pages, services.contest_participants, services.team_imports),
        contest_visible_submissions.router(contest_pages, services.contests, services.visible_submissions),
        contest_jury.router(
            contest_pages,
            services.jury_dashboard,
            services.contest_submissions,
            services.reauthentication,
            services.judging_pauses,
        ),
        contest_jury_submissions.router(
            contest_jury_submissions.JuryPages(
                contest_pages,
                services.contests,
                services.jury_submissions,
                services.contest_submissions,
                services.sources,
                services.reauthentication,
                services.languages,
            )
        ),
        contest_clarifications.router(contest_pages, services.contests, services.clarifications),
        contest_balloons.router(contest_pages, services.balloons),
        contest_prints.router(contest_pages, services.prints),
        contest_materials.router(contest_pages, services.contest_materials),
        problem_admin.router(pages, services.problems, services.revisions, services.imports),
        chains.router(pages, services.chains, services.chain_runs, services.chain_triggers),
        ratings.router(pages, services.ratings),
        rejudge.router(pages, services.languages, services.rejudges),
        ops.router(pages, services.submissions, services.ops),
        ops_control.router(pages, services.ops, services.judging_control),
        secrets.router(pages, services.secrets),
        _former_paths(pages),
        _not_found(pages),
    ):
        app.router.routes.extend(router.routes)


def _former_paths(pages: PageRenderer) -> APIRouter:
    """Permanent redirects from the former paths of pages; forms are sent again to the new path (308)."""
    routes = page_router(pages)

    @routes.api_route("/setting", methods=["GET", "POST"])
    @routes.api_route("/setting/{path:path}", methods=["GET", "POST"])
    async def problem_admin_moved(request: Request) -> Response:
        return _moved(request, "/manage" + request.url.path.removeprefix("/setting"))

    @routes.post("/language")
    async def language_moved(request: Request) -> Response:
        return _moved(request, "/preferences/language")

    return routes


def _moved(request: Request, path: str) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return Response(status_code=308, headers={"Location": f"{quote(path)}{query}"})


def _not_found(pages: PageRenderer) -> APIRouter:
    """A page for paths that do not exist."""
    routes = page_router(pages)

    @routes.get("/{path:path}")
    async def not_found(path: str) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404)
        raise NotFound("page", f"/{path}")

    return routes
