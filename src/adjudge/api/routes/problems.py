"""Problem list, problems and their public files."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor
from adjudge.api.responses import conditional_response, file_response, request_etag
from adjudge.api.routing import api_router
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import MAX_SEARCH_WORDS, MAX_TAGS, parse_tags, search_words
from adjudge.schema.problems import (
    ProblemPage,
    ProblemRead,
)
from adjudge.services.problems import ProblemKey, ProblemService, PublicFile, filter_own
from adjudge.services.viewer import Viewer
from adjudge.store.problems.models import ProblemFilter, ProblemSort

Reader = Annotated[Viewer, require_permission(Permission.PROBLEM_READ)]
Writer = Annotated[Viewer, require_permission(Permission.PROBLEM_WRITE)]
Publisher = Annotated[Viewer, require_permission(Permission.PROBLEM_PUBLISH)]
Name = Annotated[str, Path(max_length=64, description="Problem slug or ID.", examples=["multiples"])]
Number = Annotated[int, Path(ge=1, le=2**53, description="Revision number.")]
Cursor = Annotated[str | None, Query(max_length=2048, description="The `next` value of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Lang = Annotated[str, Query(max_length=8, description="Statement language. Default: `Accept-Language`.")]
_KEY_TYPES: Final = {
    ProblemSort.NEWEST: int,
    ProblemSort.TITLE: str,
    ProblemSort.EASIEST: (int, float),
    ProblemSort.HARDEST: (int, float),
}
NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "Not modified (`If-None-Match`)."}}
FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


def router(problems: ProblemService) -> APIRouter:
    routes = api_router("problems")
    _add_reading(routes, problems)
    _add_files(routes, problems)
    return routes


def _add_reading(routes: APIRouter, problems: ProblemService) -> None:
    @routes.get("/problems", summary="List problems", responses={200: {"model": ProblemPage}, **NOT_MODIFIED})
    async def list_problems(
        viewer: Reader,
        request: Request,
        *,
        q: Annotated[
            str, Query(max_length=200, description=("Search terms (prefixes match) in title, slug and tags."))
        ] = "",
        tag: Annotated[list[str] | None, Query(max_length=MAX_TAGS, description="Must have all of these tags.")] = None,
        difficulty_min: Annotated[float | None, Query(ge=0)] = None,
        difficulty_max: Annotated[float | None, Query(ge=0)] = None,
        solved: Annotated[bool | None, Query(description="Filter by solved or not solved by you.")] = None,
        tried: Annotated[
            bool | None,
            Query(description="Filter by tried but not solved by you; `false` with `solved=false`: never tried."),
        ] = None,
        mine: Annotated[bool, Query(description="Only your own problems, including drafts.")] = False,
        sort: ProblemSort = ProblemSort.NEWEST,
        cursor: Cursor = None,
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        wanted = ProblemFilter(
            words=search_words(q)[:MAX_SEARCH_WORDS],
            tags=parse_tags(tag or (), "tag"),
            min_difficulty=difficulty_min,
            max_difficulty=difficulty_max,
            is_solved=solved if viewer.user_id else None,
            is_tried=tried if viewer.user_id else None,
            sort=sort,
        )
        wanted = filter_own(wanted, viewer) if mine else wanted
        return conditional_response(
            request_etag(request),
            await problems.list_problems(viewer, wanted, after=problem_key(cursor, sort), limit=limit),
        )

    @routes.get("/problems/{problem}", summary="Get a problem", responses={200: {"model": ProblemRead}, **NOT_MODIFIED})
    async def read_problem(
        viewer: Reader,
        request: Request,
        problem: Name,
        lang: Lang = "",
        accept_language: Annotated[str, Header()] = "",
    ) -> Response:
        return conditional_response(
            request_etag(request),
            await problems.get_problem(viewer, problem, statement_languages(lang, accept_language)),
        )


def _add_files(routes: APIRouter, problems: ProblemService) -> None:
    def send(file: PublicFile) -> Response:
        pieces = problems.read_file(file)
        return file_response(pieces, name=file.name, size_bytes=file.size_bytes, digest=file.digest)

    @routes.get(
        "/problems/{problem}/files/{name:path}",
        summary="Download an attachment, a statement image or the original statement",
        response_class=Response,
        responses=FILE,
    )
    async def read_file(viewer: Reader, problem: Name, name: Annotated[str, Path(max_length=1024)]) -> Response:
        return send(await problems.get_public_file(viewer, problem, name))

    @routes.get(
        "/problems/{problem}/revisions/{number}/files/{path:path}",
        summary="Download any file of a revision (requires access to drafts)",
        response_class=Response,
        responses=FILE,
    )
    async def read_revision_file(
        viewer: Reader, problem: Name, number: Number, path: Annotated[str, Path(max_length=1024)]
    ) -> Response:
        return send(await problems.get_revision_file(viewer, problem, number, path))


def problem_key(cursor: str | None, sort: ProblemSort) -> ProblemKey | None:
    """The sort key that the cursor of a problem list contains."""
    position = decode_cursor(cursor, [_KEY_TYPES[sort], str])  # type: ignore[list-item]  # isinstance takes a tuple
    return (position[0], str(position[1])) if position else None  # type: ignore[return-value]  # checked by decode_cursor
