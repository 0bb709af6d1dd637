"""Endpoints of DOMjudge that its clients use and the Contest API does not have: ``docs/reference/domjudge-api.md``.

They are served under ``/api`` and ``/api/v4``, beside the Contest API, and their errors have its form.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request

from adjudge import __version__
from adjudge.api.auth import require_permission
from adjudge.api.routes.ccs.routing import ccs_router
from adjudge.api.uploads import form_text
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.judge.sources import SourceFile
from adjudge.services.domjudge import VERSION, DomjudgeService, OwnAccount
from adjudge.services.viewer import Viewer

PREFIXES: Final = ("/api", "/api/v4")
_OF_DOMJUDGE: Final = ("/api/v4",)
"""What only clients of DOMjudge use; the ICPC tools try ``/api``."""
API_VERSION: Final = 4
Account = Annotated[Viewer, require_permission(Permission.ACCOUNT_OWN)]
Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
Reader = Annotated[Viewer, require_permission(Permission.CONTEST_READ)]
SubmissionReader = Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)]
Contest = Annotated[str, Path(max_length=64)]
Number = Annotated[int, Path(ge=1, le=2**53, description="The id of the submission.")]
_PRINT: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "original_name": {"type": "string"},
                        "file_contents": {"type": "string", "description": "The text in base64."},
                        "language": {"type": "string"},
                        "entry_point": {"type": "string"},
                    },
                    "required": ["original_name", "file_contents"],
                }
            }
        },
    }
}


def routers(domjudge: DomjudgeService) -> list[APIRouter]:
    """The routes under each prefix."""
    return [_router(prefix, domjudge) for prefix in PREFIXES]


def domjudge_router(prefix: str) -> APIRouter:
    """A router for endpoints of DOMjudge under one prefix."""
    return ccs_router(prefix, "domjudge", _OF_DOMJUDGE)


def _router(prefix: str, domjudge: DomjudgeService) -> APIRouter:
    routes = domjudge_router(prefix)

    @routes.get("/version", summary="Get the version of DOMjudge's API")
    async def version(_: Reader) -> dict[str, Any]:
        return {"api_version": API_VERSION}

    @routes.get("/info", summary="Get information about the server")
    async def info(_: Reader) -> dict[str, Any]:
        return {"api_version": API_VERSION, "name": "Adjudge", "adjudge_version": __version__}

    @routes.get("/user", summary="Get your account")
    async def own(viewer: Account) -> dict[str, Any]:
        return _user(await domjudge.get_account(viewer))

    @routes.get("/users", summary="List accounts: your own")
    async def listed(viewer: Account) -> list[dict[str, Any]]:
        return [_user(await domjudge.get_account(viewer))]

    @routes.post("/printing/team", summary="Send a file to the printer", openapi_extra=_PRINT)
    async def printing(request: Request, viewer: Member) -> dict[str, Any]:
        async with request.form(max_files=1, max_fields=8) as form:
            name, content = form_text(form, "original_name"), form_text(form, "file_contents")
        done = await domjudge.print_file(viewer, name, _decoded(content))
        output = f"{done.row.file_name}: print job {done.row.number} of contest {done.contest}, {done.row.pages} pages."
        return {"success": True, "output": output}

    @routes.get("/contests/{contest}/", summary="Get a contest; BAPCtools adds a slash", include_in_schema=False)
    async def contest_object(contest: Contest, viewer: Reader) -> dict[str, Any]:
        return await domjudge.ccs.get_contest(viewer, contest, VERSION)

    @routes.get("/contests/{contest}/problems", summary="List the problems of a contest")
    async def problems(request: Request, contest: Contest, viewer: Reader) -> list[dict[str, Any]]:
        return await domjudge.list_problems(viewer, contest, dict(request.query_params))

    @routes.get("/contests/{contest}/judgements", summary="List the judgements of a contest")
    async def judgements(request: Request, contest: Contest, viewer: Reader) -> list[dict[str, Any]]:
        filters, own_types = dict(request.query_params), prefix in _OF_DOMJUDGE
        return await domjudge.list_judgements(viewer, contest, filters, own_types=own_types)

    @routes.get("/contests/{contest}/submissions/{number}/source-code", summary="Get the files of a submission")
    async def source_code(contest: Contest, number: Number, viewer: SubmissionReader) -> list[dict[str, Any]]:
        return _files(number, (await domjudge.get_source(viewer, contest, number)).files)

    return routes


def _user(account: OwnAccount) -> dict[str, Any]:
    """A user; jury solutions are judged without a team, so those who upload problems need none."""
    user, team = account.user, account.participant
    name = user.display_name or user.name
    return {
        "id": user.id,
        "username": user.name,
        "name": name,
        "email": None,
        "enabled": user.disabled_at is None,
        "roles": ["jury"] if account.has_jury_rights else ["team"] if team else [],
        "type": "judge" if account.has_jury_rights else "team",
        "team": team.name if team else name if account.has_jury_rights else None,
        "team_id": team.code if team else None,
    }


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("file_contents: not valid Base64.", field="file_contents") from None


def _files(number: int, files: Sequence[SourceFile]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{number}-{index}",
            "submission_id": str(number),
            "filename": file.name,
            "source": base64.b64encode(file.data).decode(),
        }
        for index, file in enumerate(files, 1)
    ]
