"""Puts the pages onto the server that ``api`` built."""

from __future__ import annotations

from fastapi import FastAPI, HTTPException
from fastapi.responses import Response

from adjudge.api.parts import Parts
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


def install(app: FastAPI, parts: Parts) -> None:
    """Add every page, its static files, and a page for addresses that lead nowhere."""
    pages = PageRenderer()
    app.include_router(pages.assets.router())
    app.include_router(preferences.router(pages))
    app.include_router(api_reference.router(pages))
    for group in (account, webhooks, problems, submissions, problem_admin, chains, rejudge, ops, secrets):
        app.include_router(group.router(pages, parts))
    lost = page_router(pages)

    @lost.get("/{path:path}")
    async def nowhere(path: str) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404)
        raise NotFound("page", f"/{path}")

    app.include_router(lost)
