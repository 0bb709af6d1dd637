"""The form of a contest's settings: one line for each field, grouped in sections.

A form keeps the texts that were sent: with errors it is shown again as it was. Durations are hours, minutes and
seconds; times are in the time zone of the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from adjudge.contests.awards import AwardRules, RankRule
from adjudge.domain.contest import (
    SECOND_US,
    ContestFeedback,
    ContestFormat,
    ContestVisibility,
    RegistrationMode,
    ScoreboardVisibility,
)
from adjudge.domain.errors import InvalidInput
from adjudge.services.contest_registration import hash_code
from adjudge.store.contests.models import ContestSettings
from adjudge.web.contest_durations import format_us, parse_us

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DEFAULT_ZONE: Final = "UTC"
MAX_NUMBER: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the form; its name is the one of the setting, or ``group.option`` for an option in a document."""

    name: str
    kind: str
    """``text``, ``area``, ``time``, ``duration``, ``choice``, ``flag``, ``number``, ``lines`` or ``languages``."""
    choices: tuple[str, ...] = ()
    required: bool = False
    default: Any = None
    """Of an option."""

    @property
    def group(self) -> str:
        """The document of an option; empty for a setting."""
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        """The name of the setting or option."""
        return self.name.rpartition(".")[2]


def _options(group: str, *fields: FormField) -> tuple[FormField, ...]:
    return tuple(replace(field, name=f"{group}.{field.name}") for field in fields)


_TIE_BREAK: Final = FormField("tie_break", "choice", ("none", "time"), default="none")
FORMAT_OPTIONS: Final[Mapping[ContestFormat, tuple[FormField, ...]]] = {
    ContestFormat.ICPC: _options(
        "icpc",
        FormField("penalty_minutes", "number", required=True, default=20),
        FormField("compile_error_penalty", "flag", default=False),
        FormField("seconds", "flag", default=False),
    ),
    ContestFormat.IOI: _options("ioi", _TIE_BREAK),
    ContestFormat.BEST: _options("best", _TIE_BREAK),
    ContestFormat.LAST: _options("last", _TIE_BREAK, FormField("ignore_compile_errors", "flag", default=False)),
    ContestFormat.ATCODER: _options("atcoder", FormField("penalty_minutes", "number", required=True, default=5)),
    ContestFormat.HOMEWORK: _options(
        "homework",
        FormField("deadline_sec", "duration"),
        FormField("late_penalty_percent_per_day", "number", required=True, default=10),
        FormField("late_penalty_cap_percent", "number", required=True, default=100),
        FormField("counts", "choice", ("best", "last"), default="best"),
    ),
}
_RULES: Final = AwardRules()
AWARD_OPTIONS: Final = _options(
    "awards",
    *(FormField(name, "number", required=True, default=getattr(_RULES, name)) for name in ("gold", "silver", "bronze")),
    FormField("rank_rule", "choice", tuple(RankRule), default=str(_RULES.rank_rule)),
    *(
        FormField(name, "flag", default=getattr(_RULES, name))
        for name in ("first_to_solve", "group_winners", "organization_winners", "honors")
    ),
)
SECTIONS: Final[Mapping[str, tuple[FormField, ...]]] = {
    "basics": (
        FormField("slug", "text", required=True),
        FormField("title", "text", required=True),
        FormField("description", "area"),
        FormField("visibility", "choice", tuple(ContestVisibility)),
        FormField("contest_only", "flag"),
        FormField("contest_only_from", "time"),
        FormField("contest_only_until", "time"),
    ),
    "times": (
        FormField("starts_at", "time"),
        FormField("duration_us", "duration", required=True),
        FormField("freeze_ct_us", "duration"),
        FormField("window_us", "duration"),
        FormField("late_policy", "choice", ("refuse", "unofficial")),
    ),
    "scoring": (
        FormField("format", "choice", tuple(ContestFormat)),
        *(field for fields in FORMAT_OPTIONS.values() for field in fields),
        FormField("verify_required", "flag"),
        FormField("rated", "flag"),
    ),
    "display": (
        FormField("feedback", "choice", tuple(ContestFeedback)),
        FormField("scoreboard_visibility", "choice", tuple(ScoreboardVisibility)),
        FormField("problems_public", "flag"),
        FormField("submissions_public", "flag"),
        FormField("materials_public", "flag"),
    ),
    "registration": (
        FormField("registration", "choice", tuple(RegistrationMode)),
        FormField("registration_code", "text"),
        FormField("registration_opens_at", "time"),
        FormField("registration_closes_at", "time"),
        FormField("allows_individuals", "flag"),
        FormField("allows_teams", "flag"),
        FormField("max_team_members", "number", required=True),
        FormField("allows_virtual", "flag"),
        FormField("allows_practice", "flag"),
    ),
    "submissions": (
        FormField("allowed_languages", "languages"),
        FormField("submissions_per_minute", "number"),
        FormField("submissions_per_problem", "number"),
        FormField("address_ranges", "lines"),
    ),
    "staff": (
        FormField("clarification_categories", "lines"),
        FormField("printing_enabled", "flag"),
        FormField("balloons_enabled", "flag"),
        FormField("freeze_balloon_minimum", "number"),
    ),
    "awards": (*AWARD_OPTIONS, FormField("bronze_extra", "number", required=True)),
}
FIELDS: Final = tuple(field for fields in SECTIONS.values() for field in fields)
_SETTINGS: Final = {
    "duration_sec": "duration_us",
    "freeze_after_sec": "freeze_ct_us",
    "window_sec": "window_us",
}
"""Fields of requests, which errors name, and their settings."""
_OPTIONAL_LISTS: Final = frozenset({"allowed_languages", "address_ranges"})
"""Empty means no restriction."""


@dataclass(frozen=True, slots=True)
class ContestForm:
    """The texts of a form and what is wrong with them."""

    values: Mapping[str, Any]
    """Texts; booleans of flags and lists of languages."""
    zone: str
    errors: Mapping[str, str]
    """What is wrong, by field; empty if nothing is."""

    def error(self, name: str) -> str:
        """What is wrong with a field."""
        return self.errors.get(name, "")


def zones() -> list[str]:
    """The time zones that a form offers."""
    return sorted(name for name in available_timezones() if "/" in name or name == DEFAULT_ZONE)


def show(settings: ContestSettings, slug: str, zone: str = DEFAULT_ZONE) -> ContestForm:
    """The form of stored settings."""
    values = {field.name: _shown(settings, field, zone) for field in FIELDS if field.name != "slug"}
    return ContestForm({**values, "slug": slug}, zone, {})


def _shown(settings: ContestSettings, field: FormField, zone: str) -> Any:
    if field.name == "registration_code":
        return ""  # only its hash is stored
    if not field.group:
        return _text(field, getattr(settings, field.name), zone)
    document = settings.awards_cfg if field.group == "awards" else settings.format_cfg
    is_used = field.group in ("awards", settings.format)
    value = document.get(field.key, field.default) if is_used else field.default
    if field.kind == "duration" and value is not None:
        value *= SECOND_US  # options are in seconds
    return _text(field, value, zone)


def _text(field: FormField, value: Any, zone: str) -> Any:
    if field.kind == "flag":
        return bool(value)
    if field.kind == "languages":
        return list(value or ())
    if value is None:
        return ""
    if field.kind == "duration":
        return format_us(value)
    if field.kind == "time":
        return format_time(value, zone)
    return "\n".join(value) if field.kind == "lines" else str(value)


def format_time(us: int, zone: str) -> str:
    """A timestamp as ``datetime-local`` inputs take it."""
    at = _EPOCH + timedelta(seconds=us // SECOND_US)
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat(timespec="seconds")


def parse_time(text: str, zone: str, field: str) -> int | None:
    """A time of a form, in microseconds since the epoch."""
    if not text.strip():
        return None
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{field}: expected a date and a time such as 2026-01-31T12:00.", field=field) from None
    try:
        aware = at if at.tzinfo is not None else at.replace(tzinfo=ZoneInfo(parse_zone(zone)))
        return (aware - _EPOCH) // timedelta(microseconds=1)
    except OverflowError:
        raise InvalidInput(f"{field}: the time is out of range.", field=field) from None


def parse_zone(zone: str) -> str:
    """Check the name of a time zone."""
    try:
        return ZoneInfo(zone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"zone: {zone[:64]!r} is not a time zone.", field="zone") from None


def read(values: Mapping[str, Any], zone: str, language_ids: list[str]) -> tuple[ContestForm, dict[str, Any]]:
    """The form as it was sent, and the parsed values by field; a field with an error has none."""
    texts: dict[str, Any] = {}
    parsed: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field in FIELDS:
        texts[field.name] = _sent(field, values, language_ids)
        try:
            parsed[field.name] = _parsed(field, texts[field.name], zone)
        except InvalidInput as error:
            errors[field.name] = without_name(error)
    return ContestForm(texts, zone, errors), parsed


def _sent(field: FormField, values: Mapping[str, Any], language_ids: list[str]) -> Any:
    value = values.get(field.name, "")
    if field.kind == "flag":
        return value != ""
    if field.kind == "languages":
        return [item for item in language_ids if item in values.get(f"{field.name}[]", ())]
    return value


def _parsed(field: FormField, text: Any, zone: str) -> Any:
    if field.kind in ("flag", "languages"):
        return tuple(text) or None if field.kind == "languages" else text
    if field.required and not text.strip():
        raise InvalidInput(f"{field.name}: must not be empty.", field=field.name)
    value = _PARSERS[field.kind](text, field, zone)
    if field.kind == "lines" and field.name in _OPTIONAL_LISTS:
        return value or None
    return value


def _parse_number(text: str, field: FormField, _zone: str) -> int | None:
    if not text.strip():
        return None
    digits = text.strip()
    if not digits.isdecimal() or len(digits) > len(str(MAX_NUMBER)) or int(digits) > MAX_NUMBER:
        raise InvalidInput(f"{field.name}: expected a whole number.", field=field.name)
    return int(digits)


def _parse_choice(text: str, field: FormField, _zone: str) -> str:
    if text not in field.choices:
        raise InvalidInput(f"{field.name}: expected one of: {', '.join(field.choices)}.", field=field.name)
    return text


_PARSERS: Final[Mapping[str, Callable[[str, FormField, str], Any]]] = {
    "text": lambda text, _field, _zone: text.strip(),
    "area": lambda text, _field, _zone: text.replace("\r\n", "\n"),
    "time": lambda text, field, zone: parse_time(text, zone, field.name),
    "duration": lambda text, field, _zone: parse_us(text, field.name),
    "choice": _parse_choice,
    "number": _parse_number,
    "lines": lambda text, _field, _zone: tuple(line.strip() for line in text.splitlines() if line.strip()),
}


_ENUMS: Final[Mapping[str, type[Any]]] = {
    "format": ContestFormat,
    "visibility": ContestVisibility,
    "feedback": ContestFeedback,
    "scoreboard_visibility": ScoreboardVisibility,
    "registration": RegistrationMode,
}


def apply(before: ContestSettings, parsed: Mapping[str, Any]) -> ContestSettings:
    """The settings with the values of a form."""
    values = {
        field.name: _ENUMS[field.name](parsed[field.name]) if field.name in _ENUMS else parsed[field.name]
        for field in FIELDS
        if not field.group and field.name not in ("slug", "registration_code")
    }
    for field in FIELDS:
        if field.kind in ("time", "duration") and not field.group:
            values[field.name] = _kept(getattr(before, field.name), values[field.name])
    settings = replace(before, **values, format_cfg=_format_cfg(parsed), awards_cfg=_awards_cfg(before, parsed))
    if settings.starts_at is not None:
        settings = replace(settings, countdown_pause_us=None)
    return _with_code(settings, parsed["registration_code"])


def _kept(before: int | None, given: int | None) -> int | None:
    """The stored time if the form shows the same: it has no fractions of seconds."""
    is_same = before is not None and given is not None and before // SECOND_US == given // SECOND_US
    return before if is_same else given


def _format_cfg(parsed: Mapping[str, Any]) -> dict[str, Any]:
    fields = FORMAT_OPTIONS[ContestFormat(parsed["format"])]
    given = {field.key: parsed[field.name] for field in fields if parsed[field.name] is not None}
    if "deadline_sec" in given:
        given["deadline_sec"] //= SECOND_US
    return given


def _awards_cfg(before: ContestSettings, parsed: Mapping[str, Any]) -> dict[str, Any]:
    return {**before.awards_cfg, **{field.key: parsed[field.name] for field in AWARD_OPTIONS}}


def _with_code(settings: ContestSettings, code: str) -> ContestSettings:
    if settings.registration is not RegistrationMode.CODE:
        return replace(settings, registration_code_hash=None)
    if code:
        return replace(settings, registration_code_hash=hash_code(code))
    if settings.registration_code_hash is None:
        raise InvalidInput("registration_code: required for registration by code.", field="registration_code")
    return settings


def with_error(form: ContestForm, error: InvalidInput) -> ContestForm:
    """The form with an error of the service beside its field."""
    named = str(error.fields.get("field", "")).partition("[")[0]
    groups = {"format_cfg": form.values["format"], "awards_cfg": "awards"}
    document, _, key = named.partition(".")
    if document in groups:
        named = f"{groups[document]}.{key}"
    named = _SETTINGS.get(named, named)
    known = {field.name for field in FIELDS}
    return replace(form, errors={**form.errors, named if named in known else "": without_name(error)})


def without_name(error: InvalidInput) -> str:
    """The message without the name of the field, which stands beside it."""
    name = str(error.fields.get("field", ""))
    text = error.message.removeprefix(f"{name}:").strip() if name else error.message
    return text[:1].upper() + text[1:]
