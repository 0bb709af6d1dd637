"""Operations: participants of contests, registration, imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_page, get, path, post, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.contest_participants import ParticipantRead, RegistrationRead, TeamImportRead


def contest_register(retry: ClientRetryPolicy, name: str, *, code: str = "") -> Program[RegistrationRead]:
    """Take part in a contest alone; ``code`` if it needs one."""
    return (yield from fetch(RegistrationRead, post(path("contests", name, action="register"), {"code": code}), retry))


def contest_participants(
    retry: ClientRetryPolicy,
    name: str,
    *,
    kind: str | None = None,
    group: str | None = None,
    search: str | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Program[Page[ParticipantRead]]:
    """A page of participants of a contest."""
    wanted = query(kind=kind, group=group, search=search, cursor=cursor, limit=limit)
    return (yield from fetch_page(ParticipantRead, get(path("contests", name, "participants"), wanted), retry))


def contest_add_participant(
    retry: ClientRetryPolicy, name: str, participant: Mapping[str, Any]
) -> Program[ParticipantRead]:
    """Add a user or a team; the fields are those of the API."""
    request = post(path("contests", name, "participants"), dict(participant))
    return (yield from fetch(ParticipantRead, request, retry))


def contest_update_participant(
    retry: ClientRetryPolicy, name: str, participant: str, changes: Mapping[str, Any]
) -> Program[ParticipantRead]:
    """Change a participant, by code or ID; the fields are those of the API."""
    request = HttpRequest("PATCH", path("contests", name, "participants", participant), {}, dict(changes))
    return (yield from fetch(ParticipantRead, request, retry))


def contest_import_teams(
    retry: ClientRetryPolicy, name: str, files: Mapping[str, str], *, preview: bool = False
) -> Program[TeamImportRead]:
    """Import teams, groups, organisations and accounts from files (name, text), or preview it."""
    body = {"files": [{"name": file_name, "text": text} for file_name, text in files.items()]}
    where = path("contests", name, "participants", action="import")
    return (yield from fetch(TeamImportRead, post(where, body, asked=query(preview=preview)), retry))
