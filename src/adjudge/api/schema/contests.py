"""Request models of contests, and the conversion between settings and their form on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.contests import clock
from adjudge.contests.times import participant_clock
from adjudge.domain.contest import (
    MICRO_POINTS,
    SECOND_US,
    ContestFeedback,
    ContestFormat,
    ContestRole,
    ContestVisibility,
    RegistrationMode,
    ScoreboardVisibility,
    to_micro_points,
)
from adjudge.domain.errors import InvalidInput
from adjudge.domain.timestamps import format_timestamp, parse_timestamp
from adjudge.schema.contests import (
    ContestDetail,
    ContestProblemRead,
    ContestRead,
    ContestSettingsRead,
)
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_problem_specs import ContestProblemSpec
from adjudge.services.contest_registration import hash_code
from adjudge.store.contests.models import ContestProblemRow, ContestSettings

_SECONDS: Final = {
    "duration_sec": "duration_us",
    "freeze_after_sec": "freeze_ct_us",
    "window_sec": "window_us",
}
"""Durations on the wire and their setting."""
_TIMES: Final = (
    "starts_at",
    "registration_opens_at",
    "registration_closes_at",
    "contest_only_from",
    "contest_only_until",
)
_CONVERTED: Final[dict[str, Callable[[Any], Any]]] = {
    "allowed_languages": tuple,
    "address_ranges": tuple,
    "clarification_categories": tuple,
    **{name: partial(parse_timestamp, field=name) for name in _TIMES},
}
"""Fields with another type than their setting."""
_YEAR_SEC: Final = 366 * 86_400


class ContestUpdate(ApiModel):
    """Settings of a contest; omitted fields stay, null removes an optional one."""

    slug: str | None = Field(None, max_length=36, examples=["spring-2026"])
    title: str | None = Field(None, max_length=200)
    description: str | None = Field(None, max_length=20_000, description="Markdown.")
    format: ContestFormat | None = None
    format_cfg: dict[str, Any] | None = Field(None, description="Options of the format; see the scoring rules.")
    starts_at: str | None = Field(None, max_length=64, examples=["2026-01-31T12:00:00Z"])
    duration_sec: float | None = Field(None, gt=0, le=_YEAR_SEC, examples=[18_000])
    freeze_after_sec: float | None = Field(
        None, ge=0, le=_YEAR_SEC, description="Contest time of the freeze.", examples=[14_400]
    )
    window_sec: float | None = Field(None, gt=0, le=_YEAR_SEC, description="Length of individual windows.")
    visibility: ContestVisibility | None = None
    scoreboard_visibility: ScoreboardVisibility | None = None
    feedback: ContestFeedback | None = None
    problems_public: bool | None = None
    submissions_public: bool | None = None
    materials_public: bool | None = None
    contest_only: bool | None = Field(None, description="Only admins set it.")
    contest_only_from: str | None = Field(None, max_length=64)
    contest_only_until: str | None = Field(None, max_length=64)
    address_ranges: list[str] | None = Field(None, max_length=100, examples=[["10.0.0.0/24"]])
    registration: RegistrationMode | None = None
    registration_code: str | None = Field(None, min_length=4, max_length=100, description="For registration by code.")
    registration_opens_at: str | None = Field(None, max_length=64)
    registration_closes_at: str | None = Field(None, max_length=64)
    allows_individuals: bool | None = None
    allows_teams: bool | None = None
    max_team_members: int | None = Field(None, ge=1, le=100)
    allows_virtual: bool | None = None
    allows_practice: bool | None = None
    allowed_languages: list[str] | None = Field(None, max_length=100)
    submissions_per_minute: int | None = Field(None, ge=1, le=1_000)
    submissions_per_problem: int | None = Field(None, ge=1, le=10_000)
    verify_required: bool | None = None
    late_policy: str | None = Field(None, pattern="^(refuse|unofficial)$")
    clarification_categories: list[str] | None = Field(None, max_length=50)
    printing_enabled: bool | None = None
    balloons_enabled: bool | None = None
    freeze_balloon_minimum: int | None = Field(None, ge=0, le=100)
    awards_cfg: dict[str, Any] | None = None
    bronze_extra: int | None = Field(None, ge=0, le=100)
    rated: bool | None = None
    version: int | None = Field(None, description="The version that you read; another one is refused with 409.")


class ContestCreate(ContestUpdate):
    """A new contest; omitted settings get their defaults."""

    slug: str = Field(max_length=36, examples=["spring-2026"])
    title: str = Field(max_length=200, examples=["Spring Contest 2026"])
    duration_sec: float = Field(gt=0, le=_YEAR_SEC, examples=[18_000])


class ContestCloneRequest(ApiModel):
    """The copy of a contest."""

    slug: str = Field(max_length=36, examples=["autumn-2026"])
    title: str = Field(max_length=200, examples=["Autumn Contest 2026"])


class ContestProblemBody(ApiModel):
    """A problem of a contest."""

    problem: str = Field(max_length=200, description="Slug or ID.", examples=["multiples"])
    label: str | None = Field(None, max_length=36, description="By default a letter by position.")
    revision: int | None = Field(
        None, ge=1, description="By default the pinned one; for a new problem the published one, else the latest."
    )
    alias: str | None = Field(None, max_length=200, description="The title in this contest.")
    rgb: str | None = Field(None, examples=["#e11d48"])
    color: str | None = Field(None, max_length=50, examples=["red"])
    points: float = Field(100, ge=0, le=1e9)
    opens_after_sec: float | None = Field(None, ge=0, le=_YEAR_SEC)
    closes_after_sec: float | None = Field(None, ge=0, le=_YEAR_SEC)
    accepts: bool = True
    judging_paused: bool | None = Field(None, description="By default unchanged.")
    allowed_languages: list[str] | None = Field(None, max_length=100)

    def spec(self) -> ContestProblemSpec:
        """Convert it to what the service takes."""
        return ContestProblemSpec(
            problem=self.problem,
            label=self.label,
            revision=self.revision,
            alias=self.alias,
            rgb=self.rgb,
            color=self.color,
            points_micro=to_micro_points(self.points),
            opens_ct_us=to_us(self.opens_after_sec),
            closes_ct_us=to_us(self.closes_after_sec),
            accepts=self.accepts,
            judging_paused=self.judging_paused,
            allowed_languages=None if self.allowed_languages is None else tuple(self.allowed_languages),
        )


class ContestProblemsUpdate(ApiModel):
    """All problems of a contest, in order."""

    problems: list[ContestProblemBody] = Field(max_length=100)
    version: int | None = Field(
        None, description="The version of the contest that you read; another one is refused with 409."
    )


class ContestRoleBody(ApiModel):
    """A role of a user."""

    user: str = Field(max_length=64, description="Name or ID.", examples=["alex"])
    role: ContestRole


class ContestReason(ApiModel):
    """Why a change is made; kept in the audit log."""

    reason: str = Field("", max_length=500)


class ContestStart(ApiModel):
    """The start of a contest."""

    starts_at: str | None = Field(None, max_length=64, description="Null: start now.")


class ContestExtension(ContestReason):
    """A change of the duration."""

    extra_sec: float = Field(ge=-_YEAR_SEC, le=_YEAR_SEC, examples=[600])


class RemovedIntervalCreate(ContestReason):
    """An interval that does not count."""

    from_at: str = Field(max_length=64, examples=["2026-01-31T13:00:00Z"])
    to_at: str | None = Field(None, max_length=64, description="Null: the contest is paused.")


def to_us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND_US)


def to_sec(us: int | None) -> float | None:
    return None if us is None else us / SECOND_US


def changed_settings(before: ContestSettings, body: ContestUpdate) -> ContestSettings:
    """The settings with the fields that the request gives."""
    values = _setting_values(body.model_dump(exclude_unset=True, exclude={"slug", "version"}))
    _refuse_null(values)
    settings = replace(before, **values)
    if settings.starts_at is not None:
        settings = replace(settings, countdown_pause_us=None)
    if settings.registration is not RegistrationMode.CODE:
        return replace(settings, registration_code_hash=None)
    if settings.registration_code_hash is None:
        raise InvalidInput("registration_code: required for registration by code.", field="registration_code")
    return settings


def _setting_values(values: dict[str, Any]) -> dict[str, Any]:
    """Fields of a request as settings: other names, units and types."""
    for name, setting in _SECONDS.items():
        if name in values:
            values[setting] = to_us(values.pop(name))
    for name, convert in _CONVERTED.items():
        if values.get(name) is not None:
            values[name] = convert(values[name])
    if "registration_code" in values:
        code = values.pop("registration_code")
        values["registration_code_hash"] = None if code is None else hash_code(code)
    return values


_NULLABLE: Final = frozenset(
    {
        "starts_at",
        "freeze_ct_us",
        "window_us",
        "address_ranges",
        "registration_code_hash",
        "registration_opens_at",
        "registration_closes_at",
        "contest_only_from",
        "contest_only_until",
        "allowed_languages",
        "submissions_per_minute",
        "submissions_per_problem",
        "freeze_balloon_minimum",
    }
)


def _refuse_null(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value is None and name not in _NULLABLE:
            wire = next((wire for wire, setting in _SECONDS.items() if setting == name), name)
            raise InvalidInput(f"{wire}: must not be null; omit it to keep its value.", field=wire)


def new_settings(body: ContestCreate) -> ContestSettings:
    """The settings of a new contest."""
    return changed_settings(ContestSettings(body.title, to_us(body.duration_sec) or 0), body)


def read_contest(view: ContestView) -> ContestRead:
    """A contest in a list."""
    return ContestRead(**_common(view))


def read_contest_detail(view: ContestView) -> ContestDetail:
    """A contest with its settings."""
    contest, times = view.contest, view.times
    settings = contest.settings
    durations = {wire: to_sec(getattr(settings, name)) for wire, name in _SECONDS.items()}
    timeline = times.timeline
    return ContestDetail.of(
        contest,
        **_common(view),
        settings=ContestSettingsRead.of(settings, **durations),
        contest_time_sec=to_sec(clock.contest_time(timeline, times.now_us)),
        freezes_at=format_timestamp(clock.freezes_at(timeline)),
        version=contest.version if view.sees_all else None,
        updated_at=format_timestamp(contest.updated_at) if view.sees_all else None,
    )


def _common(view: ContestView) -> dict[str, Any]:
    contest, times, own = view.contest, view.times, view.participant
    timeline = times.timeline
    return {
        "id": contest.id,
        "slug": contest.slug,
        "title": contest.settings.title,
        "state": contest.state,
        "phase": view.phase,
        "format": contest.settings.format,
        "starts_at": format_timestamp(contest.settings.starts_at),
        "countdown_pause_sec": to_sec(contest.settings.countdown_pause_us),
        "ends_at": format_timestamp(clock.ends_at(timeline, None if own is None else participant_clock(own))),
        "is_paused": any(item.to_at is None for item in timeline.removed),
        "is_participant": own is not None,
        "roles": sorted(view.roles),
    }


def read_problem(row: ContestProblemRow) -> ContestProblemRead:
    """A problem of a contest."""
    problem = row.problem
    return ContestProblemRead.of(
        problem,
        slug=row.slug,
        title=row.title,
        revision=row.revision,
        points=problem.points_micro / MICRO_POINTS,
        opens_after_sec=to_sec(problem.opens_ct_us),
        closes_after_sec=to_sec(problem.closes_ct_us),
    )
