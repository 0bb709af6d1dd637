"""Problem list, problem management and imports."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.responses import conditional_response, file_response, request_etag
from adjudge.api.routes.events import STREAM, encode_stream
from adjudge.api.schema.problems import ProblemUpdate, PublishRequest, RollbackRequest, WithdrawRequest, import_read
from adjudge.api.sse import EventStreamResponse, SseConnections
from adjudge.api.uploads import open_upload
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import MAX_SEARCH_WORDS, MAX_TAGS, parse_tags, search_words
from adjudge.schema.problems import (
    ImportAccepted,
    ImportPage,
    ImportRead,
    ProblemAdminRead,
    ProblemPage,
    ProblemRead,
    RevisionDiff,
    RevisionPage,
    RevisionRead,
    RevisionSummary,
    RevisionTests,
    TestStatistics,
)
from adjudge.services.problem_imports import ImportRequest, ImportState, ProblemImportService, StartedImport
from adjudge.services.problem_revisions import MetadataUpdate, ProblemRevisionService
from adjudge.services.problems import ProblemKey, ProblemService, PublicFile, filter_own
from adjudge.services.submission_events import BEAT, Stream, StreamEvent
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
_NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "Not modified (`If-None-Match`)."}}
_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
_ARCHIVE: Final = {"type": "string", "format": "binary", "description": "ZIP archive of the problem package."}
_UPLOAD: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/zip": {"schema": _ARCHIVE},
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"package": _ARCHIVE}, "required": ["package"]}
            },
        },
    }
}


def router(
    problems: ProblemService,
    revisions: ProblemRevisionService,
    imports: ProblemImportService,
    connections: SseConnections,
) -> APIRouter:
    routes = APIRouter(tags=["problems"])
    _add_reading(routes, problems)
    _add_files(routes, problems)
    _add_imports(routes, imports, connections)
    _add_management(routes, revisions)
    _add_revisions(routes, problems, revisions, imports)
    return routes


def _add_reading(routes: APIRouter, problems: ProblemService) -> None:
    @routes.get("/problems", summary="List problems", responses={200: {"model": ProblemPage}, **_NOT_MODIFIED})
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

    @routes.get(
        "/problems/{problem}", summary="Get a problem", responses={200: {"model": ProblemRead}, **_NOT_MODIFIED}
    )
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
    def sent(file: PublicFile) -> Response:
        pieces = problems.read_file(file)
        return file_response(pieces, name=file.name, size_bytes=file.size_bytes, digest=file.digest)

    @routes.get(
        "/problems/{problem}/files/{name:path}",
        summary="Download an attachment, a statement image or the original statement",
        response_class=Response,
        responses=_FILE,
    )
    async def read_file(viewer: Reader, problem: Name, name: Annotated[str, Path(max_length=1024)]) -> Response:
        return sent(await problems.get_public_file(viewer, problem, name))

    @routes.get(
        "/problems/{problem}/revisions/{number}/files/{path:path}",
        summary="Download any file of a revision (requires access to drafts)",
        response_class=Response,
        responses=_FILE,
    )
    async def read_revision_file(
        viewer: Reader, problem: Name, number: Number, path: Annotated[str, Path(max_length=1024)]
    ) -> Response:
        return sent(await problems.get_revision_file(viewer, problem, number, path))


def _add_imports(routes: APIRouter, imports: ProblemImportService, connections: SseConnections) -> None:
    @routes.post(
        "/problems:import",
        status_code=202,
        summary="Import a problem package",
        description=(
            "Send the archive as the body (`application/zip`) or as form file `package`. A new slug "
            "creates a problem; a slug of yours adds a revision. The import runs in the background."
        ),
        openapi_extra=_UPLOAD,
    )
    async def import_package(
        viewer: Writer,
        request: Request,
        *,
        slug: Annotated[str | None, Query(max_length=64, description="Default: the package's name.")] = None,
        title: Annotated[str | None, Query(max_length=200)] = None,
        tag: Annotated[
            list[str] | None, Query(max_length=MAX_TAGS, description="Default: the package's keywords.")
        ] = None,
        difficulty: Annotated[float | None, Query(ge=0)] = None,
        verify: Annotated[
            bool | None,
            Query(description="Verify the jury solutions. Default: same as `publish`; required for publishing."),
        ] = None,
        publish: Annotated[bool, Query(description="Publish if verification passes.")] = False,
        file_name: Annotated[str, Query(max_length=200, examples=["multiples.zip"])] = "",
    ) -> ImportAccepted:
        order = ImportRequest(slug, title, tuple(tag) if tag is not None else None, difficulty, verify, publish)
        async with open_upload(request, file_name, imports.upload_limit_bytes) as upload:
            return _import_accepted(await imports.start_import(viewer, order, upload.pieces, upload.file_name))

    @routes.get("/imports", summary="List your imports, newest first")
    async def list_imports(viewer: Writer, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> ImportPage:
        place = decode_cursor(cursor, [str])
        found = await imports.list_imports(viewer, before=str(place[0]) if place else None, limit=limit + 1)
        more = encode_cursor([found[limit - 1].row.id]) if len(found) > limit else None
        return ImportPage(items=[import_read(item) for item in found[:limit]], next=more)

    @routes.get("/imports/{import_id}", summary="Get the status and findings of an import")
    async def read_import(viewer: Writer, import_id: Annotated[str, Path(max_length=64)]) -> ImportRead:
        return import_read(await imports.get_import(viewer, import_id))

    @routes.get(
        "/imports/{import_id}/events",
        summary="Stream the events of an import",
        description=(
            "Events: `import` with the current state, and `end`. Each connection starts with the current state."
        ),
        responses=STREAM,
        response_class=StreamingResponse,
    )
    async def watch_import(viewer: Writer, import_id: Annotated[str, Path(max_length=64)]) -> StreamingResponse:
        states = await imports.watch_import(viewer, import_id)
        return EventStreamResponse(connections, viewer, encode_stream(_import_events(states)))

    @routes.post("/imports/{import_id}:cancel", summary="Cancel an import")
    async def cancel_import(viewer: Writer, import_id: Annotated[str, Path(max_length=64)]) -> ImportRead:
        return import_read(await imports.cancel_import(viewer, import_id))


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
        responses={200: {"model": ProblemRead}, **_NOT_MODIFIED},
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
        description="For whoever may see drafts. Counted over the latest 1,000 submissions judged on the revision.",
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
        return _import_accepted(await imports.start_verification(viewer, problem, number))


def _import_accepted(started: StartedImport) -> ImportAccepted:
    return ImportAccepted(id=started.id, job_id=started.job_id, url=f"/api/v1/imports/{started.id}")


async def _import_events(states: AsyncGenerator[ImportState | None, None]) -> Stream:
    async with aclosing(states):
        async for state in states:
            if state is None:
                yield [BEAT]
                continue
            shown = import_read(state)
            yield [StreamEvent("import", asdict(shown))]
            if shown.finished_at is not None:
                yield [StreamEvent("end", {"import_id": shown.id, "state": shown.state})]


def problem_key(cursor: str | None, sort: ProblemSort) -> ProblemKey | None:
    """The sort key that the cursor of a problem list contains."""
    place = decode_cursor(cursor, [_KEY_TYPES[sort], str])  # type: ignore[list-item]  # isinstance takes a tuple
    return (place[0], str(place[1])) if place else None  # type: ignore[return-value]  # checked by decode_cursor
