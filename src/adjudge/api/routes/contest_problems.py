"""Problems in a contest: statement, limits, samples and files of the pinned revision."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path
from fastapi.responses import Response

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import require_permission
from adjudge.api.responses import file_response
from adjudge.api.routes.problems import FILE, Lang
from adjudge.api.routing import api_router
from adjudge.api.schema.base import decode_json
from adjudge.api.schema.contests import read_problem
from adjudge.domain.permissions import Permission
from adjudge.schema.contests import ContestProblemDetail
from adjudge.schema.problems import ProblemRead
from adjudge.services.contest_problems import ContestProblemService
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]


def router(problems: ContestProblemService) -> APIRouter:
    """Routes that read one problem of a contest."""
    routes = api_router("contests", "/contests")

    @routes.get(
        "/{contest}/problems/{label}",
        summary="Get a problem of a contest",
        description="By label or slug: the statement, limits and samples of the revision that the contest uses.",
    )
    async def read(
        contest: str,
        label: str,
        viewer: Reader,
        lang: Lang = "",
        accept_language: Annotated[str, Header()] = "",
    ) -> ContestProblemDetail:
        view = await problems.contests.access.find(viewer, contest)
        row = await problems.find(view, label)
        found = await problems.get_statement(view, row, statement_languages(lang, accept_language))
        return ContestProblemDetail(**vars(read_problem(row)), problem=decode_json(ProblemRead, found.body))

    @routes.get(
        "/{contest}/problems/{label}/files/{name:path}",
        summary="Download an attachment, a statement image or the original statement",
        response_class=Response,
        responses=FILE,
    )
    async def read_file(
        contest: str, label: str, name: Annotated[str, Path(max_length=1024)], viewer: Reader
    ) -> Response:
        view = await problems.contests.access.find(viewer, contest)
        file = await problems.get_file(view, label, name)
        pieces = problems.problems.read_file(file)
        return file_response(pieces, name=file.name, size_bytes=file.size_bytes, digest=file.digest)

    return routes
