"""Reads files of teams, groups, organisations and accounts: JSON and YAML of the contest package, and DOMjudge's TSV.

Every error names the file, the line and the field; all of them are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from adjudge.packages.findings import Findings
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlSection, parse_yaml

MAX_OBJECTS: Final = 20_000
ACCOUNT_TYPES: Final = ("team", "judge", "admin", "analyst", "staff", "balloon", "other")
_CODE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,34}[A-Za-z0-9_-]|[A-Za-z0-9_]")
_KINDS: Final = ("organizations", "groups", "teams", "accounts")
_DIGITS: Final = re.compile(r"[0-9]+")
_MAX_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class ImportedObject:
    """What all objects have: an id, a name, and where they are."""

    code: str
    name: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class ImportedOrganization(ImportedObject):
    """A university, school or company."""

    formal_name: str | None = None
    country: str | None = None
    icpc_id: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedGroup(ImportedObject):
    """A group of teams."""

    icpc_id: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ImportedTeam(ImportedObject):
    """A team."""

    icpc_id: str | None = None
    label: str | None = None
    organization: str | None = None
    groups: tuple[str, ...] = ()
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ImportedAccount(ImportedObject):
    """An account; ``code`` is the user name."""

    type: str = "team"
    team: str | None = None
    password: str | None = field(default=None, repr=False)
    ip: str | None = None


@dataclass(slots=True)
class TeamFiles:
    """The objects of all files, in order."""

    organizations: list[ImportedOrganization] = field(default_factory=list)
    groups: list[ImportedGroup] = field(default_factory=list)
    teams: list[ImportedTeam] = field(default_factory=list)
    accounts: list[ImportedAccount] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


def read_team_files(files: Sequence[tuple[str, str]]) -> TeamFiles:
    """Read files (name, text); the findings of the result name what is wrong."""
    result = TeamFiles()
    for path, text in files:
        content = text.removeprefix("\ufeff")  # a byte order mark
        suffix = PurePosixPath(path).suffix.lower()
        if suffix == ".tsv":
            _read_tsv(path, content, result)
        elif suffix in (".json", ".yaml", ".yml"):
            _read_document(path, content, result)
        else:
            result.findings.error(path, "unknown file type.", "Name it teams.json, teams.yaml or teams.tsv.")
    _check_count(result)
    for kind in _KINDS:
        _check_unique(kind, getattr(result, kind), result.findings)
    return result


def _check_count(result: TeamFiles) -> None:
    count = sum(len(getattr(result, kind)) for kind in _KINDS)
    if count > MAX_OBJECTS:
        result.findings.error("", f"{count} objects; at most {MAX_OBJECTS} can be imported at once.")


def _check_unique(kind: str, items: Sequence[ImportedObject], findings: Findings) -> None:
    name = "username" if kind == "accounts" else "id"
    first: dict[str, ImportedObject] = {}
    for item in items:
        known = first.setdefault(item.code, item)
        if known is not item:
            message = f"{name}: {item.code!r} is used twice; first in {known.path}:{known.line}."
            findings.error(item.path, message, line=item.line)


# JSON and YAML of the contest package.


def _read_document(path: str, text: str, result: TeamFiles) -> None:
    kind = _kind_of(path)
    if kind is None:
        result.findings.error(path, "unknown file name.", f"Expected {', '.join(_KINDS)}.")
        return
    is_json = path.lower().endswith(".json")
    node = parse_yaml(text.replace("\t", " ") if is_json else text, path, result.findings)
    if node is None:
        return
    if not isinstance(node, YamlList):
        result.findings.error(path, "must be a list of objects.", line=node.line)
        return
    for index, item in enumerate(node.items):
        if isinstance(item, YamlMap):
            section = YamlSection(item, path, result.findings, f"[{index}].")
            _READERS[kind](section, path, item.line, result)
        else:
            result.findings.error(path, f"[{index}]: must be an object.", line=item.line)


def _read_organization(section: YamlSection, path: str, line: int, result: TeamFiles) -> None:
    code, name = _code(section, "id"), _name(section, "name")
    result.organizations.append(
        ImportedOrganization(
            code,
            name,
            path,
            line,
            _optional(section, "formal_name"),
            _optional(section, "country"),
            _optional(section, "icpc_id"),
        )
    )


def _read_group(section: YamlSection, path: str, line: int, result: TeamFiles) -> None:
    code, name = _code(section, "id"), _name(section, "name")
    hidden = section.take_flag("hidden", default=False)
    result.groups.append(ImportedGroup(code, name, path, line, _optional(section, "icpc_id"), hidden))


def _read_team(section: YamlSection, path: str, line: int, result: TeamFiles) -> None:
    code = _code(section, "id")
    name = _optional(section, "display_name") or _name(section, "name")
    result.teams.append(
        ImportedTeam(
            code,
            name,
            path,
            line,
            _optional(section, "icpc_id"),
            _optional(section, "label"),
            _optional(section, "organization_id"),
            section.take_texts("group_ids"),
            section.take_flag("hidden", default=False),
        )
    )


def _read_account(section: YamlSection, path: str, line: int, result: TeamFiles) -> None:
    username = _optional(section, "username") or _optional(section, "id") or ""
    if not username:
        section.error("username", "missing.")
    kind = section.take_choice("type", ACCOUNT_TYPES, "team")
    team = _optional(section, "team_id")
    if kind == "team" and team is None:
        section.error("team_id", "missing: an account of type team needs one.")
    result.accounts.append(
        ImportedAccount(
            username.lower(),
            _optional(section, "name") or username,
            path,
            line,
            kind,
            team,
            _optional(section, "password"),
            _optional(section, "ip"),
        )
    )


_READERS: Final[dict[str, Callable[[YamlSection, str, int, TeamFiles], None]]] = {
    "organizations": _read_organization,
    "groups": _read_group,
    "teams": _read_team,
    "accounts": _read_account,
}


def _kind_of(path: str) -> str | None:
    stem = PurePosixPath(path).stem.lower()
    return next((kind for kind in _KINDS if stem in (kind, f"{kind}2")), None)


def _optional(section: YamlSection, key: str) -> str | None:
    return section.take_text(key).strip()[:_MAX_TEXT] or None


def _code(section: YamlSection, key: str) -> str:
    code = section.take_text(key).strip()
    if not _CODE.fullmatch(code):
        section.error(key, f"{code[:60]!r} is not an id: expected 1 to 36 letters, digits, '_', '.' or '-'.")
    return code


def _name(section: YamlSection, key: str) -> str:
    name = section.take_text(key).strip()
    if not 0 < len(name) <= _MAX_TEXT:
        section.error(key, f"expected 1 to {_MAX_TEXT} characters.")
    return name


# DOMjudge's TSV.


@dataclass(frozen=True, slots=True)
class _TsvLine:
    path: str
    line: int
    columns: list[str]
    names: Sequence[str]
    findings: Findings

    def get(self, name: str) -> str:
        position = self.names.index(name)
        return self.columns[position].strip() if position < len(self.columns) else ""

    def error(self, name: str, message: str) -> None:
        column = self.names.index(name) + 1
        self.findings.error(self.path, f"column {column} ({name}): {message}", line=self.line)

    def required(self, name: str) -> str:
        value = self.get(name)
        if not value:
            self.error(name, "missing.")
        return value

    def code(self, name: str) -> str:
        value = self.required(name)
        if value and not _CODE.fullmatch(value):
            self.error(name, f"{value[:60]!r} is not an id: expected 1 to 36 letters, digits, '_', '.' or '-'.")
        return value


_TSV_COLUMNS: Final = {
    "groups": ("id", "name"),
    "teams": ("id", "icpc_id", "group", "name", "institution", "institution_short", "country", "institution_id"),
    "accounts": ("type", "name", "username", "password", "ip"),
}
_TSV_VERSIONS: Final = {"groups": ("1",), "teams": ("1", "2"), "accounts": ("1",)}


def _read_tsv(path: str, text: str, result: TeamFiles) -> None:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    kind = _tsv_kind(path, lines[0].split("\t") if lines else [], result.findings)
    if kind is None:
        return
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            _TSV_READERS[kind](_TsvLine(path, number, line.split("\t"), _TSV_COLUMNS[kind], result.findings), result)


def _tsv_kind(path: str, header: Sequence[str], findings: Findings) -> str | None:
    """The type of a file by its first line: ``File_Version`` or the type, then the version."""
    first = header[0].strip().lower() if header else ""
    kind = _kind_of(path) if first == "file_version" else first
    version = header[1].strip() if len(header) > 1 else ""
    if kind not in _TSV_COLUMNS:
        expected = "'File_Version' or one of groups, teams, accounts"
        findings.error(path, f"column 1: {first[:60]!r} is not a header; expected {expected}.", line=1)
        return None
    if version not in _TSV_VERSIONS[kind]:
        known = " or ".join(_TSV_VERSIONS[kind])
        findings.error(path, f"column 2: version {version[:20]!r} of {kind} is unknown; expected {known}.", line=1)
        return None
    return kind


def _tsv_group(line: _TsvLine, result: TeamFiles) -> None:
    result.groups.append(ImportedGroup(line.code("id"), line.required("name"), line.path, line.line))


def _tsv_team(line: _TsvLine, result: TeamFiles) -> None:
    institution = line.get("institution")
    short = line.get("institution_short")
    code = _institution_code(line.get("institution_id") or short or institution)
    if institution and code and all(item.code != code for item in result.organizations):
        organization = ImportedOrganization(
            code, short or institution, line.path, line.line, institution, line.get("country") or None
        )
        result.organizations.append(organization)
    group = line.get("group")
    result.teams.append(
        ImportedTeam(
            line.code("id"),
            line.required("name"),
            line.path,
            line.line,
            line.get("icpc_id") or None,
            line.get("id") or None,
            code if institution else None,
            (group,) if group else (),
        )
    )


def _institution_code(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text.removeprefix("INST-")).strip("-")[:36].strip("-")


def _tsv_account(line: _TsvLine, result: TeamFiles) -> None:
    kind, username = line.get("type").lower(), line.required("username").lower()
    if kind not in ACCOUNT_TYPES:
        line.error("type", f"{kind[:60]!r} is not one of {', '.join(ACCOUNT_TYPES)}.")
    team = None
    if kind == "team":
        digits = _DIGITS.search(username)
        if digits is None:
            line.error("username", f"{username[:60]!r} has no digits; the number in it names the team.")
        else:
            team = digits.group().lstrip("0") or "0"
    password, ip = line.get("password") or None, line.get("ip") or None
    name = line.get("name") or username
    result.accounts.append(ImportedAccount(username, name, line.path, line.line, kind, team, password, ip))


_TSV_READERS: Final[dict[str, Callable[[_TsvLine, TeamFiles], None]]] = {
    "groups": _tsv_group,
    "teams": _tsv_team,
    "accounts": _tsv_account,
}
