"""Reads a contest package: the objects of the Contest API (2023-06 and 2026-01) and the extension.

Nothing is raised for wrong content: all findings are in the result, each with its file, line and field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from adjudge.packages.contest_package.extension_file import read_extension
from adjudge.packages.contest_package.model import (
    EXTENSION_FILE,
    SUBMISSIONS_FILE,
    ContestObject,
    ContestPackage,
    Extension,
    ProblemObject,
)
from adjudge.packages.contest_package.times import parse_penalty, parse_reltime, parse_time
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings, package_error
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode, YamlSection, parse_yaml
from adjudge.packages.team_files import ImportedTeam, read_team_files

_PEOPLE: Final = ("organizations", "groups", "teams", "accounts")
_ENDINGS: Final = (".json", ".yaml", ".yml")
_SHORT_RGB: Final = re.compile(r"#?([0-9a-fA-F]{3})")
_RGB: Final = re.compile(r"#?([0-9a-fA-F]{6})")
_PHOTOS: Final = (".png", ".jpg", ".jpeg", ".webp")
_NOT_KEPT: Final = ("formal_name", "banner", "logo", "location")
DEFAULT_DURATION_US: Final = 5 * 3_600_000_000


def read_contest_package(files: PackageFiles, name: str) -> ContestPackage:
    """Read all objects; ``name`` is the id of a contest without one: that of the folder or archive."""
    findings = Findings()
    contest_path = _find(files, "contest", findings)
    if contest_path is None:
        raise package_error("", "has neither contest.json nor contest.yaml.", "Add one; this is no contest package.")
    contest = _read_contest(files, contest_path, name, findings)
    problems_path = _find(files, "problems", findings)
    problems = () if problems_path is None else _read_problems(files, problems_path, findings)
    people = read_team_files(_people_texts(files, findings))
    for item in people.findings.items:
        findings.items.append(item)
    people.findings = findings
    if contest.main_group is not None:
        people.teams = [_hide_outside(team, contest.main_group) for team in people.teams]
    extension = read_extension(files, findings) if EXTENSION_FILE in files else None
    package = ContestPackage(
        contest=contest,
        problems=problems,
        people=people,
        extension=extension,
        photos=_find_photos(files, people.teams),
        has_submissions=SUBMISSIONS_FILE in files,
        findings=findings,
    )
    _check_references(package, extension, problems_path or "problems.json", files)
    return package


def _find(files: PackageFiles, stem: str, findings: Findings, *more: str) -> str | None:
    """The file of an endpoint; a second one with another ending is an error."""
    found = [f"{stem}{ending}" for ending in (*_ENDINGS, *more) if f"{stem}{ending}" in files]
    for other in found[1:]:
        findings.error(other, f"is in the package beside {found[0]}.", "Remove one of them.")
    return found[0] if found else None


def _document(files: PackageFiles, path: str, findings: Findings) -> YamlNode | None:
    text = files.text(path, findings)
    if text is None:
        return None
    is_json = path.endswith(".json")
    return parse_yaml(text.replace("\t", " ") if is_json else text, path, findings)


def _read_contest(files: PackageFiles, path: str, name: str, findings: Findings) -> ContestObject:
    node = _document(files, path, findings)
    if node is not None and not isinstance(node, YamlMap):
        findings.error(path, "must be an object.", line=node.line)
        node = None
    section = YamlSection(node, path, findings)
    kind = section.take_choice("scoreboard_type", ("pass-fail", "score"), "pass-fail")
    title = section.take_text("name").strip()
    if not title:
        section.error("name", "is missing.", "Add the title of the contest.")
    duration_us = _reltime(section, "duration")
    if "duration" not in section:
        section.warning("duration", "is missing; 5:00:00 is used.")
    for key in _NOT_KEPT:
        if key in section:
            findings.info(path, f"{key}: is not kept.", line=section.line(key))
    return ContestObject(
        id=section.take_text("id", name).strip().lower(),
        name=title,
        duration_us=DEFAULT_DURATION_US if duration_us is None else duration_us,
        start_at=_time(section, "start_time"),
        countdown_pause_us=_reltime(section, "countdown_pause_time"),
        freeze_us=_reltime(section, "scoreboard_freeze_duration"),
        thaw_at=_time(section, "scoreboard_thaw_time"),
        is_pass_fail=kind == "pass-fail",
        penalty_us=_penalty(section),
        main_group=section.take_text("main_scoreboard_group_id") or None,
    )


def _reltime(section: YamlSection, key: str) -> int | None:
    text = section.take_text(key)
    if not text:
        return None
    us = parse_reltime(text)
    if us is None or us < 0:
        section.error(key, f"{text[:60]!r} is not a duration.", "Write h:mm:ss, for example 5:00:00.")
        return None
    return us


def _time(section: YamlSection, key: str) -> int | None:
    text = section.take_text(key)
    if not text:
        return None
    at = parse_time(text)
    if at is None:
        section.error(key, f"{text[:60]!r} is not a time with a zone.", "Write it as 2026-01-31T12:00:00+01:00.")
    return at


def _penalty(section: YamlSection) -> int | None:
    text = section.take_text("penalty_time")
    if not text:
        return None
    us = parse_penalty(text)
    if us is None or us < 0:
        section.error("penalty_time", f"{text[:60]!r} is not a time.", "Write whole minutes, or h:mm:ss.")
        return None
    return us


def _read_problems(files: PackageFiles, path: str, findings: Findings) -> tuple[ProblemObject, ...]:
    node = _document(files, path, findings)
    if node is None:
        return ()
    if not isinstance(node, YamlList):
        findings.error(path, "must be a list of objects.", line=node.line)
        return ()
    found: list[tuple[int, ProblemObject]] = []
    for index, item in enumerate(node.items):
        if not isinstance(item, YamlMap):
            findings.error(path, f"[{index}]: must be an object.", line=item.line)
            continue
        section = YamlSection(item, path, findings, f"[{index}].")
        found.append((section.take_integer("ordinal", index), _read_problem(section, item.line, files)))
    _check_unique(path, [item for _, item in found], findings)
    return tuple(item for _, item in sorted(found, key=lambda pair: pair[0]))


def _read_problem(section: YamlSection, line: int, files: PackageFiles) -> ProblemObject:
    problem_id, label = section.take_text("id").strip(), section.take_text("label").strip()
    for key, value in (("id", problem_id), ("label", label)):
        if not value:
            section.error(key, "is missing.")
    limit = section.take_number("time_limit", 0.0)
    count = section.take_integer("test_data_count", 0)
    return ProblemObject(
        id=problem_id,
        label=label,
        name=section.take_text("name").strip(),
        rgb=_colour(section),
        color=section.take_text("color").strip() or None,
        time_limit_sec=limit or None,
        test_data_count=count or None,
        package=_find_package(files, problem_id, _file_names(section, "package")) if problem_id else None,
        line=line,
    )


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


def _file_names(section: YamlSection, key: str) -> list[str]:
    """The names in file references; 2026-01 allows to leave them out."""
    node = section.node(key)
    items = node.items if isinstance(node, YamlList) else []
    sections = [YamlSection(item, "", Findings()) for item in items if isinstance(item, YamlMap)]
    return [name for item in sections if (name := item.take_text("filename"))]


def _find_package(files: PackageFiles, problem_id: str, names: list[str]) -> str | None:
    """A problem package: as referenced, by its default names, or as a folder."""
    folder = f"problems/{problem_id}"
    wanted = [*names, "package.zip", f"{problem_id}.zip"]
    for path in (*(f"{folder}/{name}" for name in wanted), f"problems/{problem_id}.zip", f"{problem_id}.zip"):
        if path in files:
            return path
    for root in (f"{folder}/", f"{problem_id}/"):
        if f"{root}problem.yaml" in files:
            return root
    return None


def _check_unique(path: str, problems: list[ProblemObject], findings: Findings) -> None:
    for key in ("id", "label"):
        first: dict[str, int] = {}
        for index, item in enumerate(problems):
            value = str(getattr(item, key)).casefold()
            if value and first.setdefault(value, index) != index:
                message = f"[{index}].{key}: {value[:60]!r} is used twice."
                findings.error(path, message, "Give each problem its own.", item.line)


def _people_texts(files: PackageFiles, findings: Findings) -> list[tuple[str, str]]:
    found = []
    for kind in _PEOPLE:
        path = _find(files, kind, findings, ".tsv")
        text = None if path is None else files.text(path, findings)
        if path is not None and text is not None:
            found.append((path, text))
    return found


def _hide_outside(team: ImportedTeam, group: str) -> ImportedTeam:
    is_hidden = team.hidden or group not in team.groups
    return ImportedTeam(
        team.code, team.name, team.path, team.line, team.icpc_id, team.label, team.organization, team.groups, is_hidden
    )


def _find_photos(files: PackageFiles, teams: list[ImportedTeam]) -> Mapping[str, str]:
    """The photos of teams: ``teams/ID/photo.png`` or another single picture there."""
    photos: dict[str, str] = {}
    for team in teams:
        pictures = [name for name in files.names(f"teams/{team.code}") if PurePosixPath(name).suffix.lower() in _PHOTOS]
        named = [name for name in pictures if PurePosixPath(name).name.startswith("photo.")]
        if named or len(pictures) == 1:
            photos[team.code] = (named or pictures)[0]
    return photos


def _check_references(package: ContestPackage, extension: Extension | None, path: str, files: PackageFiles) -> None:
    findings = package.findings
    if package.has_submissions and extension is None and EXTENSION_FILE not in files:
        fix = f"Add {EXTENSION_FILE}, or remove the submissions."
        findings.error(SUBMISSIONS_FILE, f"needs {EXTENSION_FILE}.", fix)
    if extension is None:
        return
    known = {
        "problems": {item.id for item in package.problems},
        "groups": {item.code for item in package.people.groups},
        "participants": {item.code for item in package.people.teams},
    }
    sources = {"problems": path, "groups": "groups.json", "participants": "teams.json"}
    for section, ids in known.items():
        for index, item in enumerate(getattr(extension, section)):
            if item.id not in ids:
                message = f"{section}[{index}].id: {item.id[:60]!r} is not in {sources[section]}."
                findings.error(EXTENSION_FILE, message, "Add it there, or remove it here.")
