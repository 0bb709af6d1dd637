"""Output of the contest commands: a contest, and durations as people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import click
from rich.markup import escape

from adjudge.cli.output import make_console
from adjudge.domain.errors import InvalidInput
from adjudge.schema.base import ResponseModel
from adjudge.schema.contests import ContestDetail, ContestRead

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"([+-]?)((?:\d+[dhms])+)")
_SECONDS: Final = re.compile(r"[+-]?\d+(\.\d+)?")
_PART: Final = re.compile(r"(\d+)([dhms])")


def print_json(item: ResponseModel | Sequence[ResponseModel]) -> None:
    """Print a response, or a list of them, as JSON."""
    shown: Any = asdict(item) if isinstance(item, ResponseModel) else [asdict(each) for each in item]  # type: ignore[call-overload]
    click.echo(json.dumps(shown, indent=2, ensure_ascii=False))


def print_contest(contest: ContestDetail, *, as_json: bool) -> None:
    """Print a contest after a change, in one line."""
    if as_json:
        print_json(contest)
        return
    start = contest.starts_at or "not set"
    end = f", ends {contest.ends_at}" if contest.ends_at else ""
    click.echo(f"{contest.slug}: {status(contest)}, starts {start}{end}, version {contest.version}")


def status(contest: ContestRead) -> str:
    """The stored state of a contest; the phase if it is published."""
    if contest.state != "published":
        return contest.state
    is_paused = contest.is_paused or contest.countdown_pause_sec is not None
    return f"{contest.phase}, paused" if is_paused else str(contest.phase)


def print_settings(contest: ContestDetail) -> None:
    """Print all settings of a contest, one per line."""
    console = make_console()
    console.print(f"[bold]{escape(contest.title)}[/]  [dim]{contest.slug}, {contest.id}[/]")
    shown = {
        "state": status(contest),
        "starts_at": contest.starts_at,
        "ends_at": contest.ends_at,
        "freezes_at": contest.freezes_at,
        "thaw_at": contest.thaw_at,
        "finalized_at": contest.finalized_at,
        "end_of_updates_at": contest.end_of_updates_at,
        "contest_time": format_duration(contest.contest_time_sec),
        "roles": ", ".join(contest.roles),
        "version": contest.version,
        **_settings(contest),
    }
    width = max(len(name) for name in shown)
    for name, value in shown.items():
        if value not in (None, "", [], {}):
            console.print(f"[dim]{name:<{width}}[/]  {escape(_text(value))}")


def _settings(contest: ContestDetail) -> dict[str, Any]:
    """The settings, durations in hours and minutes."""
    values = asdict(contest.settings)
    durations = [name for name in values if name.endswith("_sec")]
    return {name: format_duration(value) if name in durations else value for name, value in values.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def format_duration(seconds: float | None) -> str | None:
    """A duration as ``5h30m``."""
    if seconds is None:
        return None
    left, parts = abs(round(seconds)), list[str]()
    for unit, length in _UNITS.items():
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 else "") + ("".join(parts) or "0s")


def parse_duration(text: str, field: str) -> float:
    """Seconds of a duration such as ``5h``, ``1h30m``, ``-10m`` or ``2d``; a number is seconds."""
    if _SECONDS.fullmatch(text):
        return float(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{field}: {text!r} is not a duration; expected for example 5h, 1h30m or 600.", field=field)
    seconds = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(found[2]))
    return float(-seconds if found[1] == "-" else seconds)
