"""Puts the pages onto the server that ``api`` built."""

from __future__ import annotations

from fastapi import FastAPI, HTTPException
from fastapi.responses import Response

from adjudge.api.container import Services
from adjudge.domain.errors import NotFound
from adjudge.web.render import PageRenderer
from adjudge.web.routes import (
    account,
    api_reference,
    chains,
    ops,
    preferences,
    problem_admin,
    problems,
    rejudge,
    secrets,
    submissions,
    webhooks,
)
from adjudge.web.routes.router import page_router


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
    for router in (
        pages.assets.router(),
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
            languages=services.languages,
            users=services.users,
            ops=services.ops,
        ),
        problem_admin.router(pages, services.problems, services.revisions, services.imports),
        chains.router(pages, services.chains, services.chain_runs, services.chain_triggers),
        rejudge.router(pages, services.languages, services.rejudges),
        ops.router(pages, services.submissions, services.ops),
        secrets.router(pages, services.secrets),
    ):
        app.include_router(router)
    lost = page_router(pages)

    @lost.get("/{path:path}")
    async def nowhere(path: str) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404)
        raise NotFound("page", f"/{path}")

    app.include_router(lost)
