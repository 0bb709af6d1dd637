"""``adjudge contest create | edit | clone``: settings by option or from a file, under the names of the API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from adjudge.chains.definition_file import read_document
from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import parse_duration, print_contest
from adjudge.cli.options import json_option, server_option
from adjudge.domain.contest import (
    ContestFeedback,
    ContestFormat,
    ContestVisibility,
    RegistrationMode,
    ScoreboardVisibility,
)
from adjudge.domain.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])

_TEXTS: Final = {
    "title": "Title.",
    "description": "Description, Markdown.",
    "registration_code": "Code of participants, for registration by code.",
}
_TIMES: Final = {
    "starts_at": "Start, e.g. 2026-01-31T12:00:00Z.",
    "registration_opens_at": "When registration opens.",
    "registration_closes_at": "When registration closes.",
    "contest_only_from": "When the contest-only mode begins; without it, at once.",
    "contest_only_until": "When the contest-only mode ends; without it, when it is turned off.",
}
_DURATIONS: Final = {
    "duration": "Duration, e.g. 5h.",
    "freeze_after": "Contest time at which the public scoreboard freezes, e.g. 4h.",
    "window": "Length of individual windows: everyone starts when they choose.",
}
_CHOICES: Final[dict[str, tuple[Sequence[str], str]]] = {
    "format": (tuple(ContestFormat), "Scoring format."),
    "visibility": (tuple(ContestVisibility), "Who may know of the contest."),
    "scoreboard_visibility": (tuple(ScoreboardVisibility), "Who sees the scoreboard during the contest."),
    "feedback": (tuple(ContestFeedback), "What participants see of their own judgements."),
    "registration": (tuple(RegistrationMode), "How participants register."),
    "late_policy": (("refuse", "unofficial"), "Submissions after the end."),
}
_NUMBERS: Final = {
    "max_team_members": "Members of a team at most.",
    "submissions_per_minute": "Submissions of a participant per minute at most.",
    "submissions_per_problem": "Submissions of a participant to a problem at most.",
    "freeze_balloon_minimum": "In the freeze, only participants with fewer balloons get one.",
    "bronze_extra": "Additional bronze medals.",
}
_FLAGS: Final = {
    "problems_public": "Visitors see the problems while the contest runs.",
    "submissions_public": "All details of submissions are public once finalized.",
    "materials_public": "Editorials, solutions and tests are public once thawed.",
    "contest_only": "The installation serves only this contest.",
    "allows_individuals": "Individuals may take part.",
    "allows_teams": "Teams may take part.",
    "allows_virtual": "Virtual participation after the end.",
    "allows_practice": "Practice after the end.",
    "verify_required": "A verdict counts only after a judge has verified it.",
    "printing_enabled": "Participants may print.",
    "balloons_enabled": "Balloons are handed out.",
    "rated": "The contest changes ratings.",
}
_LISTS: Final = {
    "address_ranges": ("--address-range", "Network that participants must submit from. May be repeated."),
    "allowed_languages": ("--language", "Allowed language. May be repeated."),
    "clarification_categories": ("--category", "Category of clarifications. May be repeated."),
}
_DOCUMENTS: Final = {
    "format_cfg": 'Options of the format as JSON, e.g. {"penalty_minutes": 20}.',
    "awards_cfg": 'Options of the awards as JSON, e.g. {"gold": 4}.',
}
_CLEARABLE: Final = {
    "starts_at": "starts_at",
    "freeze_after": "freeze_after_sec",
    "window": "window_sec",
    "address_ranges": "address_ranges",
    "registration_opens_at": "registration_opens_at",
    "registration_closes_at": "registration_closes_at",
    "contest_only_from": "contest_only_from",
    "contest_only_until": "contest_only_until",
    "allowed_languages": "allowed_languages",
    "submissions_per_minute": "submissions_per_minute",
    "submissions_per_problem": "submissions_per_problem",
    "freeze_balloon_minimum": "freeze_balloon_minimum",
}
"""Settings that may be empty, and their names in the API."""

file_option = click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML or JSON file with settings under their names in the API. Options take precedence.",
)


def settings_options(function: F) -> F:
    """Add an option for every setting."""
    for option in reversed(_options()):
        function = option(function)
    return function


def _options() -> list[Callable[[F], F]]:
    made: list[Callable[[F], F]] = [click.option(_flag(name), help=help_) for name, help_ in _TEXTS.items()]
    made += [click.option(_flag(name), metavar="TIME", help=help_) for name, help_ in _TIMES.items()]
    made += [click.option(_flag(name), metavar="DURATION", help=help_) for name, help_ in _DURATIONS.items()]
    made += [
        click.option(_flag(name), name, type=click.Choice([str(item) for item in values]), help=help_)
        for name, (values, help_) in _CHOICES.items()
    ]
    made += [click.option(_flag(name), type=int, help=help_) for name, help_ in _NUMBERS.items()]
    made += [
        click.option(f"{_flag(name)}/--no-{name.replace('_', '-')}", default=None, help=help_)
        for name, help_ in _FLAGS.items()
    ]
    made += [click.option(flag, name, multiple=True, help=help_) for name, (flag, help_) in _LISTS.items()]
    made += [click.option(_flag(name), metavar="JSON", help=help_) for name, help_ in _DOCUMENTS.items()]
    return made


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def read_settings(path: Path | None, given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file and of options, as the API takes them."""
    values = {} if path is None else read_file(path)
    if not isinstance(values, dict):
        raise InvalidInput(f"{path}: expected an object with settings.", field="file")
    for name, value in given.items():
        if value is None or value == ():
            continue
        if name in _DURATIONS:
            values[f"{name}_sec"] = parse_duration(value, _flag(name))
        elif name in _DOCUMENTS:
            values[name] = _parse_json(value, _flag(name))
        else:
            values[name] = list(value) if name in _LISTS else value
    return values


def _parse_json(text: str, field: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{field}: invalid JSON: {error}.", field=field) from None


def read_file(path: Path) -> Any:
    """The content of a YAML or JSON file."""
    try:
        return read_document(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot read file: {error}.", field="file") from None


@click.command()
@click.argument("slug", required=False)
@settings_options
@file_option
@json_option
@server_option
def create(slug: str | None, path: Path | None, as_json: bool, server: str | None, **given: Any) -> None:
    """Create a contest as a draft.

    Slug, title and duration are required, by option or in the file; all other settings have defaults.
    """
    values = read_settings(path, given) | ({} if slug is None else {"slug": slug})
    if "slug" not in values:
        raise InvalidInput("Missing argument: the slug of the contest.", field="slug")
    with open_client(server) as client:
        print_contest(client.contest_create(values), as_json=as_json)


@click.command()
@click.argument("contest")
@settings_options
@click.option("--slug", help="New slug.")
@click.option("--clear", multiple=True, type=click.Choice(list(_CLEARABLE)), help="Empty a setting. May be repeated.")
@click.option("--expect-version", type=int, help="Fail if the contest has another version.")
@file_option
@json_option
@server_option
def edit(
    contest: str,
    *,
    path: Path | None,
    clear: tuple[str, ...],
    expect_version: int | None,
    as_json: bool,
    server: str | None,
    **given: Any,
) -> None:
    """Change settings of a contest. Settings that are not given stay."""
    values = read_settings(path, given) | {_CLEARABLE[name]: None for name in clear}
    if not values:
        raise InvalidInput("Missing option: at least one setting.", field="settings")
    with open_client(server) as client:
        print_contest(client.contest_update(contest, values, version=expect_version), as_json=as_json)


@click.command()
@click.argument("contest")
@click.argument("slug")
@click.option("--title", help="Title of the copy. Default: the title of the contest.")
@json_option
@server_option
def clone(contest: str, slug: str, title: str | None, as_json: bool, server: str | None) -> None:
    """Copy settings, problems and roles into a new draft without times and participants."""
    with open_client(server) as client:
        wanted = title or client.contest(contest).title
        print_contest(client.contest_clone(contest, slug=slug, title=wanted), as_json=as_json)


SETTINGS_COMMANDS: Final = (create, edit, clone)
