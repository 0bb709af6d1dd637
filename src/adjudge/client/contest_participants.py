"""Operations: participants of contests, registration, imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_list, fetch_page, get, path, post, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.contest_participants import (
    AccountCardRead,
    AccountsChanged,
    ContestAccountRead,
    ContestAccountTokenRead,
    ContestGroupRead,
    ContestInvitationCreated,
    ContestInvitationRead,
    ContestOrganizationRead,
    GroupTimesRead,
    ParticipantRead,
    RegistrationRead,
    TeamImportRead,
)


def contest_register(retry: ClientRetryPolicy, name: str, *, code: str = "") -> Program[RegistrationRead]:
    """Take part in a contest alone; ``code`` if it needs one."""
    return (yield from fetch(RegistrationRead, post(path("contests", name, action="register"), {"code": code}), retry))


def contest_start_virtual(retry: ClientRetryPolicy, name: str) -> Program[RegistrationRead]:
    """Take part after the contest as if it started now."""
    return (yield from fetch(RegistrationRead, post(path("contests", name, action="start-virtual")), retry))


def contest_practise(retry: ClientRetryPolicy, name: str) -> Program[RegistrationRead]:
    """Submit to the problems after the contest, without a row on the scoreboard."""
    return (yield from fetch(RegistrationRead, post(path("contests", name, action="practise")), retry))


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


def contest_remove_participant(retry: ClientRetryPolicy, name: str, participant: str) -> Program[None]:
    """Remove a participant without submissions."""
    yield from send(HttpRequest("DELETE", path("contests", name, "participants", participant)), retry)


# Groups and organisations.


def contest_groups(retry: ClientRetryPolicy, name: str) -> Program[tuple[ContestGroupRead, ...]]:
    """The groups of a contest, in order."""
    return (yield from fetch_list(ContestGroupRead, get(path("contests", name, "groups")), retry))


def contest_set_groups(
    retry: ClientRetryPolicy, name: str, groups: Sequence[Mapping[str, Any]]
) -> Program[tuple[ContestGroupRead, ...]]:
    """Replace the groups of a contest; the fields are those of the API."""
    body = {"groups": [dict(item) for item in groups]}
    return (
        yield from fetch_list(ContestGroupRead, HttpRequest("PUT", path("contests", name, "groups"), {}, body), retry)
    )


def contest_set_group_times(
    retry: ClientRetryPolicy,
    name: str,
    group: str,
    *,
    delay_sec: float | None = None,
    extra_sec: float | None = None,
    reason: str = "",
) -> Program[GroupTimesRead]:
    """Set delay and extra time of all participants of a group; None keeps a value."""
    body = {"delay_sec": delay_sec, "extra_sec": extra_sec, "reason": reason}
    request = post(path("contests", name, "groups", group, action="times"), body)
    return (yield from fetch(GroupTimesRead, request, retry))


def contest_organizations(retry: ClientRetryPolicy, name: str) -> Program[tuple[ContestOrganizationRead, ...]]:
    """All organisations, for organisers of a contest."""
    return (yield from fetch_list(ContestOrganizationRead, get(path("contests", name, "organizations")), retry))


def contest_save_organization(
    retry: ClientRetryPolicy, name: str, organization: Mapping[str, Any]
) -> Program[ContestOrganizationRead]:
    """Create an organisation; the fields are those of the API."""
    request = post(path("contests", name, "organizations"), dict(organization))
    return (yield from fetch(ContestOrganizationRead, request, retry))


# Invitations.


def contest_invitations(retry: ClientRetryPolicy, name: str) -> Program[tuple[ContestInvitationRead, ...]]:
    """The invitations to a contest."""
    return (yield from fetch_list(ContestInvitationRead, get(path("contests", name, "invitations")), retry))


def contest_invite(
    retry: ClientRetryPolicy, name: str, invitation: Mapping[str, Any]
) -> Program[ContestInvitationCreated]:
    """Create an invitation; the fields are those of the API."""
    request = post(path("contests", name, "invitations"), dict(invitation))
    return (yield from fetch(ContestInvitationCreated, request, retry))


def contest_revoke_invitation(retry: ClientRetryPolicy, name: str, invitation_id: str) -> Program[None]:
    """Revoke an invitation."""
    yield from send(HttpRequest("DELETE", path("contests", name, "invitations", invitation_id)), retry)


# Accounts that were made for a contest.


def contest_accounts(
    retry: ClientRetryPolicy, name: str, *, cursor: str | None = None, limit: int = 100
) -> Program[Page[ContestAccountRead]]:
    """A page of the accounts that were made for a contest."""
    request = get(path("contests", name, "accounts"), query(cursor=cursor, limit=limit))
    return (yield from fetch_page(ContestAccountRead, request, retry))


def contest_create_accounts(
    retry: ClientRetryPolicy, name: str, participants: Sequence[str] = (), *, prefix: str = ""
) -> Program[tuple[AccountCardRead, ...]]:
    """Make an account for each of the teams, or for each team without members; passwords are generated."""
    body = {"participants": list(participants), "prefix": prefix}
    request = post(path("contests", name, "accounts", action="create"), body)
    return (yield from fetch_list(AccountCardRead, request, retry))


def contest_renew_passwords(
    retry: ClientRetryPolicy, name: str, names: Sequence[str] = ()
) -> Program[tuple[AccountCardRead, ...]]:
    """Generate new passwords for the accounts, or for all without a role in the contest."""
    request = post(path("contests", name, "accounts", action="renew-passwords"), {"names": list(names)})
    return (yield from fetch_list(AccountCardRead, request, retry))


def contest_disable_accounts(
    retry: ClientRetryPolicy, name: str, names: Sequence[str] = (), *, reason: str = ""
) -> Program[AccountsChanged]:
    """Disable the accounts, or all without a role in the contest."""
    request = post(path("contests", name, "accounts", action="disable"), {"names": list(names), "reason": reason})
    return (yield from fetch(AccountsChanged, request, retry))


def contest_enable_accounts(
    retry: ClientRetryPolicy, name: str, names: Sequence[str] = (), *, reason: str = ""
) -> Program[AccountsChanged]:
    """Enable the accounts, or all without a role in the contest."""
    request = post(path("contests", name, "accounts", action="enable"), {"names": list(names), "reason": reason})
    return (yield from fetch(AccountsChanged, request, retry))


def contest_create_tokens(
    retry: ClientRetryPolicy, name: str, *, label: str = "rehearsal", expires_in_hours: float = 24.0
) -> Program[tuple[ContestAccountTokenRead, ...]]:
    """Create a token for each account that was made for the contest, by user name; needs the role organiser."""
    body = {"name": label, "expires_in_hours": expires_in_hours}
    where = path("contests", name, "accounts", action="create-tokens")
    return (yield from fetch_list(ContestAccountTokenRead, post(where, body), retry))
