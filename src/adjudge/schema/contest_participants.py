"""Participants of contests, groups, invitations and imports on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.domain.contest import ParticipantKind
from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ContestOrganizationRead(ResponseModel):
    """A university, school or company."""

    code: str
    name: str
    formal_name: str | None
    country: str | None


@dataclass(frozen=True, kw_only=True)
class ContestOrganizationList(ResponseModel):
    """Organisations by code."""

    items: list[ContestOrganizationRead]


@dataclass(frozen=True, kw_only=True)
class ParticipantRead(ResponseModel):
    """A participant of a contest."""

    id: str
    code: str
    name: str
    kind: ParticipantKind
    is_team: bool
    organization: ContestOrganizationRead | None
    groups: list[str] = field(metadata=doc("Codes of groups."))
    label: str | None
    is_disqualified: bool
    run_no: int = field(metadata=doc("0: the contest itself; else a virtual run or practice."))
    hidden: bool
    location: str | None = field(default=None, metadata=doc("Null unless you are of the jury, as the fields below."))
    started_at: Timestamp | None = None
    delay_sec: float | None = None
    extra_sec: float | None = None
    members: list[str] | None = field(default=None, metadata=doc("Names of the users who submit for it."))
    version: int | None = None


@dataclass(frozen=True, kw_only=True)
class ParticipantPage(ResponseModel):
    """A page of participants."""

    items: list[ParticipantRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class RegistrationRead(ResponseModel):
    """Your participation in a contest."""

    participant: ParticipantRead
    join_code: str | None = field(
        default=None, metadata=doc("With it others join the team; shown once, when the team is created.")
    )


@dataclass(frozen=True, kw_only=True)
class ContestGroupRead(ResponseModel):
    """A group of participants."""

    code: str
    name: str
    icpc_id: str | None
    ranked: bool
    hidden: bool


@dataclass(frozen=True, kw_only=True)
class ContestGroupList(ResponseModel):
    """The groups of a contest, in order."""

    items: list[ContestGroupRead]


@dataclass(frozen=True, kw_only=True)
class GroupTimesRead(ResponseModel):
    """How many participants got another delay or extra time."""

    changed: int


@dataclass(frozen=True, kw_only=True)
class ContestInvitationCreated(ResponseModel):
    """A new invitation; the code is shown once."""

    id: str
    code: str


@dataclass(frozen=True, kw_only=True)
class ContestInvitationRead(ResponseModel):
    """An invitation to a contest."""

    id: str
    kind: ParticipantKind
    user_id: str | None
    note: str | None
    max_uses: int
    uses: int
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class ContestInvitationList(ResponseModel):
    """The invitations to a contest."""

    items: list[ContestInvitationRead]


@dataclass(frozen=True, kw_only=True)
class TeamImportItem(ResponseModel):
    """What an import does with one object."""

    kind: str = field(metadata=doc("`organization`, `group`, `team` or `account`."))
    code: str
    name: str
    action: str = field(metadata=doc("`create`, `update` or `unchanged`."))


@dataclass(frozen=True, kw_only=True)
class TeamImportFinding(ResponseModel):
    """Something wrong in a file; line 0 is the whole file."""

    severity: str
    path: str
    line: int
    message: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class AccountCardRead(ResponseModel):
    """A new account and its generated password, which is shown once."""

    username: str
    name: str
    team: str | None
    password: str
    location: str | None


@dataclass(frozen=True, kw_only=True)
class AccountCardList(ResponseModel):
    """Accounts with their new passwords, which are shown once."""

    items: list[AccountCardRead]


@dataclass(frozen=True, kw_only=True)
class ContestAccountRead(ResponseModel):
    """An account that was made for a contest."""

    username: str
    name: str
    participant: str | None = field(metadata=doc("Code of the participant that it submits for."))
    has_role: bool = field(metadata=doc("Whether it has a role in the contest."))
    is_disabled: bool
    expires_at: Timestamp | None = field(metadata=doc("A day after the contest; null while its end is not known."))
    address_ranges: list[str] | None = field(metadata=doc("Networks that it can log in from; null: all."))


@dataclass(frozen=True, kw_only=True)
class ContestAccountPage(ResponseModel):
    """A page of accounts."""

    items: list[ContestAccountRead]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class AccountsChanged(ResponseModel):
    """How many accounts were changed."""

    changed: int


@dataclass(frozen=True, kw_only=True)
class TeamImportRead(ResponseModel):
    """What an import did, or with `preview` would do."""

    is_preview: bool
    items: list[TeamImportItem]
    findings: list[TeamImportFinding]
    accounts: list[AccountCardRead] = field(metadata=doc("New accounts whose passwords were generated."))


@dataclass(frozen=True, kw_only=True)
class ContestAccountTokenRead(ResponseModel):
    """A token of an account that was made for a contest; the secret is shown once."""

    username: str
    participant: str = field(metadata=doc("Code of the participant for whom the account submits."))
    secret: str = field(metadata=doc(examples=["adj_…"]))


@dataclass(frozen=True, kw_only=True)
class ContestAccountTokenList(ResponseModel):
    """New tokens, by user name."""

    items: list[ContestAccountTokenRead]
