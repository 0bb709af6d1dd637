"""Participants of contests: registration, and what organisers do with them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from adjudge.api.pagination import DEFAULT_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.contests import Member, Reader
from adjudge.api.routing import api_router
from adjudge.api.schema.contest_participants import (
    ContestInvite,
    ContestRegister,
    ParticipantCreate,
    ParticipantUpdate,
    TeamCreate,
    TeamImportRequest,
    TeamJoin,
    read_import,
    read_participant,
)
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.timestamps import parse_timestamp
from adjudge.schema.contest_participants import (
    ContestInvitationCreated,
    ContestInvitationList,
    ContestInvitationRead,
    ParticipantPage,
    ParticipantRead,
    RegistrationRead,
    TeamImportRead,
)
from adjudge.services.contest_invitations import ContestInvitationService
from adjudge.services.contest_registration import ContestRegistrationService
from adjudge.services.participants import ParticipantDetail, ParticipantService
from adjudge.services.team_import import TeamImportService
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.registration import ParticipantFilter

_MAX_LIMIT = 1_000


def router(
    registrations: ContestRegistrationService,
    participants: ParticipantService,
    invitations: ContestInvitationService,
    imports: TeamImportService,
) -> APIRouter:
    """All routes of participants."""
    routes = api_router("contest participants", "/contests")
    _add_registration_routes(routes, registrations)
    _add_team_routes(routes, registrations)
    _add_list_routes(routes, participants)
    _add_change_routes(routes, participants)
    _add_invitation_routes(routes, invitations)
    _add_import_route(routes, imports)
    return routes


def _registered(row: ParticipantRow, join_code: str | None = None) -> RegistrationRead:
    return RegistrationRead(participant=read_participant(ParticipantDetail(row, None, (), ())), join_code=join_code)


def _add_registration_routes(routes: APIRouter, registrations: ContestRegistrationService) -> None:
    @routes.post("/{contest}:register", status_code=201, summary="Take part alone")
    async def register(contest: str, body: ContestRegister, viewer: Member) -> RegistrationRead:
        return _registered(await registrations.register(viewer, contest, body.code))

    @routes.post(
        "/{contest}:leave",
        status_code=204,
        summary="Leave a contest before its start",
        response_class=Response,
    )
    async def leave(contest: str, viewer: Member) -> Response:
        await registrations.leave(viewer, contest)
        return Response(status_code=204)

    @routes.post("/{contest}:start-window", summary="Start your own window")
    async def start_window(contest: str, viewer: Member) -> RegistrationRead:
        return _registered(await registrations.start_window(viewer, contest))

    @routes.post(
        "/{contest}:start-virtual",
        status_code=201,
        summary="Take part after the contest as if it started now",
    )
    async def start_virtual(contest: str, viewer: Member) -> RegistrationRead:
        return _registered(await registrations.start_virtual(viewer, contest))

    @routes.post("/{contest}:practise", status_code=201, summary="Practise after the contest")
    async def practise(contest: str, viewer: Member) -> RegistrationRead:
        return _registered(await registrations.practise(viewer, contest))


def _add_team_routes(routes: APIRouter, registrations: ContestRegistrationService) -> None:
    @routes.post("/{contest}/teams", status_code=201, summary="Take part with a new team")
    async def create_team(contest: str, body: TeamCreate, viewer: Member) -> RegistrationRead:
        made = await registrations.create_team(viewer, contest, body.name, body.code)
        return _registered(made.participant, made.join_code)

    @routes.post("/{contest}/teams:join", summary="Join a team by its join code")
    async def join_team(contest: str, body: TeamJoin, viewer: Member) -> RegistrationRead:
        return _registered(await registrations.join_team(viewer, contest, body.join_code))

    @routes.post("/{contest}/teams:renew-join-code", summary="Replace the join code of your team")
    async def renew_join_code(contest: str, viewer: Member) -> RegistrationRead:
        made = await registrations.renew_join_code(viewer, contest)
        return _registered(made.participant, made.join_code)


def _add_list_routes(routes: APIRouter, participants: ParticipantService) -> None:
    @routes.get(
        "/{contest}/participants",
        summary="List participants",
        description="Hidden participants, testers, virtual runs and practice are listed only for the jury.",
    )
    async def page(
        contest: str,
        viewer: Reader,
        *,
        kind: ParticipantKind | None = None,
        group: Annotated[str, Query(max_length=36)] = "",
        search: Annotated[str, Query(max_length=100)] = "",
        limit: Annotated[int, Query(ge=1, le=_MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ParticipantPage:
        position = decode_cursor(cursor, [str])
        after = str(position[0]) if position else ""
        wanted = ParticipantFilter(kind, search=search, with_hidden=True)
        view, found = await participants.list_participants(
            viewer, contest, wanted, group=group, after=after, limit=limit
        )
        more = encode_cursor([found[-1].row.id]) if len(found) == limit else None
        return ParticipantPage(items=[read_participant(item, is_jury=view.sees_all) for item in found], next=more)

    @routes.get("/{contest}/participants/{participant}", summary="Get a participant")
    async def one(contest: str, participant: str, viewer: Member) -> ParticipantRead:
        return read_participant((await participants.get(viewer, contest, participant))[1], is_jury=True)


def _add_change_routes(routes: APIRouter, participants: ParticipantService) -> None:
    @routes.post("/{contest}/participants", status_code=201, summary="Add a user or a team")
    async def add(contest: str, body: ParticipantCreate, viewer: Member) -> ParticipantRead:
        return read_participant(await participants.add(viewer, contest, body.spec()), is_jury=True)

    @routes.patch(
        "/{contest}/participants/{participant}",
        summary="Change a participant",
        description="Name, kind, groups, members, disqualification, delay, extra time; its row is computed again.",
    )
    async def update(contest: str, participant: str, body: ParticipantUpdate, viewer: Member) -> ParticipantRead:
        changed = await participants.update(
            viewer, contest, participant, body.changes(), reason=body.reason, version=body.version
        )
        return read_participant(changed, is_jury=True)

    @routes.delete(
        "/{contest}/participants/{participant}",
        status_code=204,
        summary="Remove a participant without submissions",
        response_class=Response,
    )
    async def remove(contest: str, participant: str, viewer: Member) -> Response:
        await participants.remove(viewer, contest, participant)
        return Response(status_code=204)


def _add_invitation_routes(routes: APIRouter, invitations: ContestInvitationService) -> None:
    @routes.get("/{contest}/invitations", summary="List invitations to a contest")
    async def page(contest: str, viewer: Member) -> ContestInvitationList:
        found = await invitations.list_invitations(viewer, contest)
        return ContestInvitationList(items=[ContestInvitationRead.of(item) for item in found])

    @routes.post("/{contest}/invitations", status_code=201, summary="Create an invitation to a contest")
    async def invite(contest: str, body: ContestInvite, viewer: Member) -> ContestInvitationCreated:
        made = await invitations.invite(
            viewer,
            contest,
            kind=body.kind,
            user=body.user,
            note=body.note,
            max_uses=body.max_uses,
            expires_at=None if body.expires_at is None else parse_timestamp(body.expires_at, "expires_at"),
        )
        return ContestInvitationCreated(id=made.id, code=made.code)

    @routes.delete(
        "/{contest}/invitations/{invitation_id}",
        status_code=204,
        summary="Revoke an invitation to a contest",
        response_class=Response,
    )
    async def revoke(contest: str, invitation_id: str, viewer: Member) -> Response:
        await invitations.revoke_invitation(viewer, contest, invitation_id)
        return Response(status_code=204)


def _add_import_route(routes: APIRouter, imports: TeamImportService) -> None:
    @routes.post(
        "/{contest}/participants:import",
        summary="Import teams, groups, organisations and accounts",
        description="All or nothing. With `preview`, nothing is written, and errors are listed in `findings`.",
    )
    async def import_teams(
        contest: str, body: TeamImportRequest, viewer: Member, preview: Annotated[bool, Query()] = False
    ) -> TeamImportRead:
        files = [(item.name, item.text) for item in body.files]
        run = imports.preview if preview else imports.apply
        return read_import(await run(viewer, contest, files), is_preview=preview)
