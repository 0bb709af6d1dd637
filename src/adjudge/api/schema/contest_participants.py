"""Request models of participants, and their conversion to responses."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.api.schema.contests import ContestReason, to_sec, to_us
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import InvalidInput
from adjudge.domain.timestamps import format_timestamp
from adjudge.schema.contest_participants import (
    AccountCardRead,
    ContestAccountRead,
    ContestOrganizationRead,
    ParticipantRead,
    TeamImportFinding,
    TeamImportItem,
    TeamImportRead,
)
from adjudge.services.contest_accounts import AccountCard
from adjudge.services.participants import ParticipantDetail, ParticipantSpec
from adjudge.services.team_import import ImportReport
from adjudge.store.contests.accounts import ContestAccountDetail
from adjudge.store.contests.models import ContestGroupRow, OrganizationRow

_YEAR_SEC: Final = 366 * 86_400
_NULLABLE: Final = frozenset({"organization", "label", "location"})


class ContestRegister(ApiModel):
    """A registration."""

    code: str = Field("", max_length=100, description="Registration or invitation code, if the contest needs one.")


class TeamCreate(ContestRegister):
    """A new team."""

    name: str = Field(max_length=200, examples=["Null Pointers"])


class TeamJoin(ApiModel):
    """The join code of a team."""

    join_code: str = Field(max_length=100, examples=["k3m9x7tq2p"])


class ParticipantBase(ApiModel):
    """What an organiser sets of a participant."""

    code: str | None = Field(None, max_length=36, description="Unique in the contest.", examples=["team42"])
    name: str | None = Field(None, max_length=200)
    kind: ParticipantKind | None = None
    organization: str | None = Field(None, max_length=36, description="Code of an organisation.")
    groups: list[str] | None = Field(None, max_length=50, description="Codes of groups.")
    members: list[str] | None = Field(None, max_length=100, description="Users of a team, by name or ID.")
    label: str | None = Field(None, max_length=36)
    location: str | None = Field(None, max_length=100)
    hidden: bool | None = None


class ParticipantCreate(ParticipantBase):
    """A new participant: a user, or a team with members."""

    user: str | None = Field(None, max_length=64, description="Name or ID of a user; omitted for a team.")

    def spec(self) -> ParticipantSpec:
        """Convert it to what the service takes."""
        return ParticipantSpec(
            user=self.user,
            name=self.name or "",
            code=self.code or "",
            kind=self.kind or ParticipantKind.OFFICIAL,
            organization=self.organization,
            groups=tuple(self.groups or ()),
            members=tuple(self.members or ()),
            label=self.label,
            location=self.location,
            hidden=bool(self.hidden),
        )


class ParticipantUpdate(ParticipantBase):
    """Changes of a participant; omitted fields stay."""

    disqualified: bool | None = None
    delay_sec: float | None = Field(None, ge=0, le=_YEAR_SEC, description="Starts and ends this much later.")
    extra_sec: float | None = Field(None, ge=0, le=_YEAR_SEC, description="Has this much more time.")
    reason: str = Field("", max_length=500, description="Kept in the audit log.")
    version: int | None = Field(None, description="The version that you read; another one is refused with 409.")

    def changes(self) -> dict[str, Any]:
        """The given fields as the service takes them."""
        values = self.model_dump(exclude_unset=True, exclude={"reason", "version"})
        for name, value in values.items():
            if value is None and name not in _NULLABLE:
                raise InvalidInput(f"{name}: must not be null; omit it to keep its value.", field=name)
        for wire in ("delay_sec", "extra_sec"):
            if wire in values:
                values[wire.replace("_sec", "_us")] = to_us(values.pop(wire))
        return values


class GroupTimes(ContestReason):
    """Delay and extra time of a group; null keeps a value."""

    delay_sec: float | None = Field(None, ge=0, le=_YEAR_SEC)
    extra_sec: float | None = Field(None, ge=0, le=_YEAR_SEC)


class ContestGroupBody(ApiModel):
    """A group of participants."""

    code: str = Field(max_length=36, examples=["north"])
    name: str = Field(max_length=200, examples=["North"])
    icpc_id: str | None = Field(None, max_length=36)
    ranked: bool = True
    hidden: bool = False

    def row(self) -> ContestGroupRow:
        """Convert it to a row; the service sets its ids and position."""
        return ContestGroupRow("", "", self.code, self.name, self.icpc_id, self.ranked, self.hidden)


class ContestGroupsUpdate(ApiModel):
    """All groups of a contest, in order."""

    groups: list[ContestGroupBody] = Field(max_length=1_000)


class OrganizationBody(ApiModel):
    """An organisation."""

    code: str = Field(max_length=36, examples=["tsinghua"])
    name: str = Field(max_length=200, examples=["Tsinghua University"])
    formal_name: str | None = Field(None, max_length=200)
    country: str | None = Field(None, max_length=3, description="ISO 3166-1 alpha-3.", examples=["CHN"])
    icpc_id: str | None = Field(None, max_length=36)

    def row(self) -> OrganizationRow:
        """Convert it to a row; the service sets its id."""
        return OrganizationRow("", self.code, self.name, self.formal_name or None, self.country or None, self.icpc_id)


class AccountsCreate(ApiModel):
    """For which teams accounts are made."""

    participants: list[str] = Field(default=[], max_length=10_000, description="Codes of teams; empty: all without.")
    prefix: str = Field("", max_length=20, description="Beginning of the user names.", examples=["spring-"])


class AccountNames(ApiModel):
    """Accounts of a contest."""

    names: list[str] = Field(
        default=[], max_length=10_000, description="User names; empty: all without a role in the contest."
    )


class AccountsSwitch(AccountNames):
    """Accounts to be disabled or enabled."""

    reason: str = Field("", max_length=500, description="Kept in the audit log.")


class TeamFile(ApiModel):
    """A file of teams, groups, organisations or accounts."""

    name: str = Field(
        max_length=200,
        description="`teams`, `groups`, `organizations` or `accounts` with `.json`, `.yaml` or `.tsv`.",
        examples=["teams.tsv"],
    )
    text: str = Field(max_length=8_000_000, examples=["teams\t1\n1\t\tnorth\tNull Pointers\n"])


class TeamImportRequest(ApiModel):
    """The files of one import."""

    files: list[TeamFile] = Field(min_length=1, max_length=20)


class ContestTokensCreate(ApiModel):
    """New tokens of the accounts that were made for a contest."""

    name: str = Field("rehearsal", max_length=100, description="Name of each token.")
    expires_in_hours: float = Field(24.0, gt=0, le=168, description="Lifetime of the tokens.")


class ContestInvite(ApiModel):
    """A new invitation."""

    kind: ParticipantKind = ParticipantKind.OFFICIAL
    user: str | None = Field(None, max_length=64, description="Only for this user, by name or ID.")
    note: str | None = Field(None, max_length=200)
    max_uses: int = Field(1, ge=1, le=100_000)
    expires_at: str | None = Field(None, max_length=64)


def read_participant(item: ParticipantDetail, *, is_jury: bool = False) -> ParticipantRead:
    """A participant as everybody sees it, or as the jury does."""
    row = item.row
    return ParticipantRead.of(
        row,
        is_team=row.team_id is not None,
        organization=None if item.organization is None else ContestOrganizationRead.of(item.organization),
        groups=list(item.groups),
        is_disqualified=row.disqualified_at is not None,
        location=row.location if is_jury else None,
        started_at=format_timestamp(row.started_at) if is_jury else None,
        delay_sec=to_sec(row.delay_us) if is_jury else None,
        extra_sec=to_sec(row.extra_us) if is_jury else None,
        members=list(item.members) if is_jury else None,
        version=row.version if is_jury else None,
    )


def read_account(item: ContestAccountDetail) -> ContestAccountRead:
    """An account as organisers see it."""
    return ContestAccountRead(
        username=item.user_name,
        name=item.participant_name or item.display_name or item.user_name,
        participant=item.participant_code,
        has_role=item.has_role,
        is_disabled=item.disabled_at is not None,
        expires_at=format_timestamp(item.expires_at),
        address_ranges=None if item.address_ranges is None else list(item.address_ranges),
    )


def read_card(item: AccountCard) -> AccountCardRead:
    """A card of the printed sheet."""
    return AccountCardRead.of(item)


def read_import(report: ImportReport, *, is_preview: bool) -> TeamImportRead:
    """What an import does or did."""
    return TeamImportRead(
        is_preview=is_preview,
        items=[TeamImportItem.of(item) for item in report.items],
        findings=[TeamImportFinding.of(item) for item in report.findings],
        accounts=[read_card(item) for item in report.cards],
    )
