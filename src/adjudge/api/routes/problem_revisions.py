"""Metadata, publication and revisions of problems."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, decode_cursor, encode_cursor
from adjudge.api.responses import conditional_response, request_etag
from adjudge.api.routes.problem_imports import Writer, import_accepted
from adjudge.api.routes.problems import NOT_MODIFIED, Cursor, Lang, Limit, Name, Reader
from adjudge.api.routing import api_router
from adjudge.api.schema.problems import ProblemUpdate, PublishRequest, RollbackRequest, WithdrawRequest
from adjudge.domain.permissions import Permission
from adjudge.schema.problems import (
    ImportAccepted,
    ProblemAdminRead,
    ProblemRead,
    RevisionDiff,
    RevisionPage,
    RevisionRead,
    RevisionSummary,
    RevisionTests,
    TestStatistics,
)
from adjudge.services.problem_imports import ProblemImportService
from adjudge.services.problem_revisions import MetadataUpdate, ProblemRevisionService
from adjudge.services.problems import ProblemService
from adjudge.services.viewer import Viewer

Publisher = Annotated[Viewer, require_permission(Permission.PROBLEM_PUBLISH)]
Number = Annotated[int, Path(ge=1, le=2**53, description="Revision number.")]


def router(problems: ProblemService, revisions: ProblemRevisionService, imports: ProblemImportService) -> APIRouter:
    routes = api_router("problems")
    _add_management(routes, revisions)
    _add_revisions(routes, problems, revisions, imports)
    return routes


def _add_management(routes: APIRouter, revisions: ProblemRevisionService) -> None:
    @routes.get("/problems/{problem}/state", summary="Get a problem with its administrative state")
    async def read_state(viewer: Writer, problem: Name) -> ProblemAdminRead:
        return ProblemAdminRead.of(await revisions.get_problem_admin(viewer, problem))

    @routes.patch("/problems/{problem}", summary="Change title, tags or difficulty")
    async def edit_problem(viewer: Writer, problem: Name, patch: ProblemUpdate) -> ProblemAdminRead:
        update = MetadataUpdate(
            patch.version, patch.title, patch.tags, patch.difficulty, "difficulty" in patch.model_fields_set
        )
        return ProblemAdminRead.of(await revisions.update_metadata(viewer, problem, update))

    @routes.post("/problems/{problem}:publish", summary="Publish a revision")
    async def publish(viewer: Publisher, problem: Name, body: PublishRequest) -> ProblemAdminRead:
        return ProblemAdminRead.of(
            await revisions.publish_revision(
                viewer, problem, version=body.version, number=body.revision, reason=body.reason
            )
        )

    @routes.post("/problems/{problem}:rollback", summary="Roll back to an earlier revision")
    async def roll_back(viewer: Publisher, problem: Name, body: RollbackRequest) -> ProblemAdminRead:
        return ProblemAdminRead.of(
            await revisions.publish_revision(
                viewer,
                problem,
                version=body.version,
                number=body.revision,
                reason=body.reason,
                action="rollback",
            )
        )

    @routes.post("/problems/{problem}:withdraw", summary="Withdraw a problem")
    async def withdraw(viewer: Publisher, problem: Name, body: WithdrawRequest) -> ProblemAdminRead:
        return ProblemAdminRead.of(
            await revisions.withdraw_problem(viewer, problem, version=body.version, reason=body.reason)
        )


def _add_revisions(
    routes: APIRouter, problems: ProblemService, revisions: ProblemRevisionService, imports: ProblemImportService
) -> None:
    @routes.get("/problems/{problem}/revisions", summary="List the revisions of a problem, newest first")
    async def list_revisions(
        viewer: Reader, problem: Name, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
    ) -> RevisionPage:
        place = decode_cursor(cursor, [int])
        before = int(place[0] or 0) if place else None
        found = await revisions.list_revisions(viewer, problem, before=before, limit=limit + 1)
        more = encode_cursor([found[limit - 1].number]) if len(found) > limit else None
        return RevisionPage(items=[RevisionSummary.of(item) for item in found[:limit]], next=more)

    @routes.get("/problems/{problem}/revisions/{number}", summary="Get a revision")
    async def read_revision(viewer: Reader, problem: Name, number: Number) -> RevisionRead:
        return RevisionRead.of(await revisions.get_revision(viewer, problem, number))

    @routes.get(
        "/problems/{problem}/revisions/{number}/preview",
        summary="Preview a revision as contestants see it",
        responses={200: {"model": ProblemRead}, **NOT_MODIFIED},
    )
    async def preview_revision(
        viewer: Reader,
        request: Request,
        problem: Name,
        number: Number,
        *,
        lang: Lang = "",
        accept_language: Annotated[str, Header()] = "",
    ) -> Response:
        languages = statement_languages(lang, accept_language)
        return conditional_response(request_etag(request), await problems.get_draft(viewer, problem, languages, number))

    @routes.get(
        "/problems/{problem}/revisions/{number}/tests",
        summary="How programs fare on each test of a revision",
        description="Requires access to drafts. Counted over the latest 1,000 submissions judged on the revision.",
    )
    async def test_statistics(viewer: Reader, problem: Name, number: Number) -> RevisionTests:
        found = await revisions.tests(viewer, problem, number)
        return RevisionTests(items=[TestStatistics.of(item) for item in found])

    @routes.get("/problems/{problem}/diff", summary="Compare two revisions")
    async def compare_revisions(
        viewer: Reader,
        problem: Name,
        old: Annotated[int, Query(ge=1, le=2**53)],
        new: Annotated[int, Query(ge=1, le=2**53)],
    ) -> RevisionDiff:
        return RevisionDiff.of(await revisions.diff_revisions(viewer, problem, old=old, new=new))

    @routes.post(
        "/problems/{problem}/revisions/{number}:verify",
        status_code=202,
        summary="Verify a revision with the jury solutions",
    )
    async def verify_revision(viewer: Writer, problem: Name, number: Number) -> ImportAccepted:
        return import_accepted(await imports.start_verification(viewer, problem, number))
