"""Writes the files of a contest package (Contest API 2023-06): pure, the same contest always gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adjudge import __version__
from adjudge.domain.contest import MINUTE_US
from adjudge.packages.contest_package.extension_file import write_document, write_extension
from adjudge.packages.contest_package.model import EXTENSION_FILE, ContestObject, ContestPackage, ProblemObject
from adjudge.packages.contest_package.times import format_reltime, format_time
from adjudge.packages.team_files import ImportedAccount, ImportedGroup, ImportedOrganization, ImportedTeam

API_VERSION: Final = "2023-06"
_API: Final = {
    "version": API_VERSION,
    "version_url": f"https://ccs-specs.icpc.io/{API_VERSION}/contest_api",
    "provider": {"name": "Adjudge", "version": __version__},
}
_MEDIA_TYPES: Final = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp"}


def write_documents(package: ContestPackage) -> dict[str, bytes]:
    """All JSON files of a package, by name."""
    objects = contest_objects(package)
    documents = {f"{name}.json": write_document(value) for name, value in objects.items()}
    if package.extension is not None:
        documents[EXTENSION_FILE] = write_extension(package.extension)
    return {"api.json": write_document(_API), **documents}


def contest_objects(package: ContestPackage) -> dict[str, Any]:
    """The objects of the Contest API, by endpoint."""
    people = package.people
    return {
        "contest": _contest(package.contest),
        "problems": [_problem(item, index) for index, item in enumerate(package.problems)],
        "groups": [_group(item) for item in people.groups],
        "organizations": [_organization(item) for item in people.organizations],
        "teams": [_team(item, package.photos) for item in people.teams],
        "accounts": [_account(item) for item in people.accounts],
    }


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _contest(item: ContestObject) -> dict[str, Any]:
    return _given(
        id=item.id,
        name=item.name,
        start_time=None if item.start_at is None else format_time(item.start_at),
        countdown_pause_time=None if item.countdown_pause_us is None else format_reltime(item.countdown_pause_us),
        duration=format_reltime(item.duration_us),
        scoreboard_freeze_duration=None if item.freeze_us is None else format_reltime(item.freeze_us),
        scoreboard_thaw_time=None if item.thaw_at is None else format_time(item.thaw_at),
        scoreboard_type="pass-fail" if item.is_pass_fail else "score",
        penalty_time=None if item.penalty_us is None else _penalty(item.penalty_us),
    )


def _penalty(us: int) -> int | str:
    return us // MINUTE_US if us % MINUTE_US == 0 else format_reltime(us)


def _problem(item: ProblemObject, ordinal: int) -> dict[str, Any]:
    return _given(
        id=item.id,
        label=item.label,
        name=item.name,
        ordinal=ordinal,
        rgb=item.rgb,
        color=item.color,
        time_limit=item.time_limit_sec,
        test_data_count=item.test_data_count,
        package=None if item.package is None else [_file(item.package, "application/zip")],
    )


def _file(path: str, media_type: str) -> dict[str, str]:
    return {"href": path, "filename": path.rpartition("/")[2], "mime": media_type}


def _group(item: ImportedGroup) -> dict[str, Any]:
    return _given(id=item.code, name=item.name, icpc_id=item.icpc_id, hidden=True if item.hidden else None)


def _organization(item: ImportedOrganization) -> dict[str, Any]:
    return _given(
        id=item.code, name=item.name, formal_name=item.formal_name, country=item.country, icpc_id=item.icpc_id
    )


def _team(item: ImportedTeam, photos: Mapping[str, str]) -> dict[str, Any]:
    photo = photos.get(item.code)
    media_type = _MEDIA_TYPES.get((photo or "").rpartition(".")[2], "application/octet-stream")
    return _given(
        id=item.code,
        name=item.name,
        label=item.label,
        icpc_id=item.icpc_id,
        organization_id=item.organization,
        group_ids=sorted(item.groups) or None,
        hidden=True if item.hidden else None,
        photo=None if photo is None else [_file(photo, media_type)],
    )


def _account(item: ImportedAccount) -> dict[str, Any]:
    name = None if item.name == item.code else item.name
    return _given(id=item.code, username=item.code, name=name, type=item.type, team_id=item.team, ip=item.ip)
