"""Reads ``problems.yaml`` and ``contest.yaml`` (or JSON) as clients of DOMjudge upload them.

They are the objects of the Contest API, with older names of keys, and with keys of the tools, which are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adjudge.contests.ccs.times import parse_reltime, parse_time
from adjudge.domain.errors import InvalidInput
from adjudge.packages.findings import Findings, PackageRefused
from adjudge.packages.load import default_name
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode, YamlScalar, YamlSection, parse_yaml

FILE_BYTES_MAX: Final = 1024 * 1024
_SHORT_RGB: Final = re.compile(r"#?([0-9a-fA-F]{3})")
_RGB: Final = re.compile(r"#?([0-9a-fA-F]{6})")
_DEFAULT_DURATION: Final = "5:00:00"


@dataclass(frozen=True, slots=True)
class ListedPackage:
    """A problem of ``problems.yaml``; its package is uploaded before or after."""

    slug: str
    """The id of the problem as a slug."""
    label: str
    title: str
    rgb: str | None
    color: str | None


@dataclass(frozen=True, slots=True)
class ContestFile:
    """``contest.yaml``."""

    slug: str
    title: str
    starts_at: int | None
    duration_us: int
    freeze_us: int | None
    """How long before the end the scoreboard freezes."""
    penalty_min: int | None


def read_problem_list(data: bytes, path: str) -> list[ListedPackage]:
    """The problems in their order; every error names its line and field."""
    findings = Findings()
    node = _document(data, path, findings)
    if isinstance(node, YamlMap) and isinstance(node.items.get("problems"), YamlList):
        node = node.items["problems"]
    if node is not None and not isinstance(node, YamlList):
        findings.error(path, "must be a list of problems.", line=node.line)
    found = []
    for index, item in enumerate(node.items if isinstance(node, YamlList) else []):
        if isinstance(item, YamlMap):
            found.append(_listed(YamlSection(item, path, findings, f"[{index}].")))
        else:
            findings.error(path, f"[{index}]: must be an object.", line=item.line)
    if not found and not findings.has_errors:
        findings.error(path, "lists no problems.", "Add at least one with id and label.")
    _check(findings)
    return found


def _listed(section: YamlSection) -> ListedPackage:
    name, label = (_first(section, *keys) for keys in (("id", "short-name"), ("label", "letter")))
    slug = default_name(Path(name)) if name else ""
    for key, value in (("id", slug), ("label", label)):
        if not value:
            section.error(key, "is missing.")
    return ListedPackage(slug, label, _title(section) or name, _colour(section), _first(section, "color") or None)


def _title(section: YamlSection) -> str:
    """The name: a text, or a map from languages, of which English is preferred."""
    node = section.node("name")
    if isinstance(node, YamlMap):
        names = {key: item.text for key, item in node.items.items() if isinstance(item, YamlScalar)}
        return names.get("en") or next(iter(names.values()), "")
    return section.take_text("name").strip()


def _colour(section: YamlSection) -> str | None:
    text = section.take_text("rgb").strip()
    if not text:
        return None
    if short := _SHORT_RGB.fullmatch(text):
        return "#" + "".join(2 * digit for digit in short[1])
    if full := _RGB.fullmatch(text):
        return f"#{full[1]}"
    section.error("rgb", f"{text[:20]!r} is not a colour.", "Write #rrggbb.")
    return None


def read_contest_file(data: bytes, path: str) -> ContestFile:
    """The contest; every error names its line and field."""
    findings = Findings()
    node = _document(data, path, findings)
    if node is not None and not isinstance(node, YamlMap):
        findings.error(path, "must be an object.", line=node.line)
    section = YamlSection(node if isinstance(node, YamlMap) else None, path, findings)
    title = _first(section, "formal_name", "formal-name", "name")
    if not title:
        section.error("name", "is missing.")
    slug = _first(section, "id", "short_name", "short-name", "shortname") or default_name(Path(title))
    found = ContestFile(
        slug=slug.lower(),
        title=title,
        starts_at=_time(section),
        duration_us=_reltime(section, "duration") or 0,
        freeze_us=_reltime(section, "scoreboard_freeze_duration", "scoreboard-freeze-duration"),
        penalty_min=section.take_integer("penalty_time", 0) if "penalty_time" in section else None,
    )
    if found.freeze_us is not None and found.freeze_us > found.duration_us:
        section.error("scoreboard_freeze_duration", "is longer than the contest.")
    _check(findings)
    return found


def _time(section: YamlSection) -> int | None:
    text = _first(section, "start_time", "start-time")
    if not text:
        return None
    try:
        return parse_time(text.replace(" ", "T", 1), "start_time")
    except InvalidInput:
        section.error("start_time", f"{text[:60]!r} is not a time with a zone.", "Write 2026-01-31T12:00:00+01:00.")
        return None


def _reltime(section: YamlSection, *keys: str) -> int | None:
    text = _first(section, *keys) or (_DEFAULT_DURATION if keys[0] == "duration" else "")
    if not text:
        return None
    try:
        return parse_reltime(text, keys[0])
    except InvalidInput:
        section.error(keys[0], f"{text[:60]!r} is not a duration.", "Write h:mm:ss, for example 5:00:00.")
        return None


def _first(section: YamlSection, *keys: str) -> str:
    """The text of the first key that is there."""
    return next((section.take_text(key).strip() for key in keys if key in section), "")


def _document(data: bytes, path: str, findings: Findings) -> YamlNode | None:
    if len(data) > FILE_BYTES_MAX:
        findings.error(path, f"has more than {FILE_BYTES_MAX} bytes.")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        findings.error(path, "is not valid UTF-8.")
        return None
    return parse_yaml(text.replace("\t", " "), path, findings)


def _check(findings: Findings) -> None:
    if findings.has_errors:
        raise PackageRefused(findings)
