"""Objects that are set before the contest: the contest, languages, problems, groups, organisations, teams, people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.contests import clock
from adjudge.contests.ccs.snapshot import ContestLanguage, ContestSnapshot, ImageInfo
from adjudge.contests.ccs.times import format_reltime, format_time
from adjudge.contests.ccs.verdicts import judgement_type_objects
from adjudge.contests.ccs.version import MAIN_GROUP, MAIN_GROUP_ID, Object
from adjudge.contests.exports import points_number
from adjudge.domain.contest import MINUTE_US, ContestRole
from adjudge.domain.limits import MIB
from adjudge.domain.problem import Problem
from adjudge.store.contests.ccs import CcsPersonRow
from adjudge.store.contests.models import ContestGroupRow, ContestProblemRow, OrganizationRow, ParticipantRow

_COUNTRY: Final = re.compile(r"[A-Z]{3}")
_KIB: Final = 1024
_ACCOUNT_TYPES: Final = (
    (ContestRole.ORGANISER, "admin"),
    (ContestRole.JUDGE, "judge"),
    (ContestRole.API_READER, "analyst"),
    (ContestRole.BALLOON, "staff"),
    (ContestRole.PRINT, "staff"),
)


def without_nulls(item: Mapping[str, Any]) -> Object:
    """The object without properties that have no value, which clients treat alike."""
    return {name: value for name, value in item.items() if value is not None}


def contest_object(snapshot: ContestSnapshot) -> Object:
    """The contest; ``shortname`` is what clients of DOMjudge show."""
    contest, settings, timeline = snapshot.contest, snapshot.contest.settings, snapshot.times.timeline
    frozen_us = _freeze_us(snapshot)
    return without_nulls(
        {
            "id": contest.slug,
            "name": settings.title,
            "formal_name": settings.title,
            "shortname": contest.slug,
            "start_time": _time(timeline.starts_at),
            "countdown_pause_time": _reltime(timeline.countdown_pause_us),
            "duration": format_reltime(snapshot.duration_us),
            "scoreboard_freeze_duration": _reltime(frozen_us),
            "scoreboard_thaw_time": _time(timeline.thaw_at),
            "scoreboard_type": "pass-fail" if snapshot.is_pass_fail else "score",
            MAIN_GROUP: MAIN_GROUP_ID,
            "penalty_time": _reltime(snapshot.icpc.penalty_minutes * MINUTE_US) if snapshot.is_pass_fail else None,
        }
    )


def _freeze_us(snapshot: ContestSnapshot) -> int | None:
    """How long before the end of the contest, as it is shown, the freeze begins."""
    timeline = snapshot.times.timeline
    if not timeline.has_freeze:
        return None
    began = clock.freezes_at(timeline)
    freeze_ct_us = timeline.freeze_ct_us if began is None else clock.contest_time(timeline, began)
    return None if freeze_ct_us is None else max(0, snapshot.duration_us - freeze_ct_us)


def judgement_types(snapshot: ContestSnapshot) -> list[Object]:
    return judgement_type_objects(
        is_pass_fail=snapshot.is_pass_fail, compile_error_penalty=snapshot.icpc.compile_error_penalty
    )


def languages(snapshot: ContestSnapshot) -> list[Object]:
    """The languages of the contest. No entry point is required: the judge finds it."""
    return [_language(item) for item in snapshot.languages]


def _language(language: ContestLanguage) -> Object:
    found: Object = {
        "id": language.id,
        "name": language.name,
        "entry_point_required": False,
        "extensions": list(language.extensions),
        "runner": _command(language.run),
    }
    return found | ({"compiler": _command(language.compile)} if language.compile else {})


def _command(argv: Sequence[str]) -> Object:
    args = " ".join(argv[1:]).replace("{sources}", "{files}")
    return {"command": argv[0], "args": args}


def problems(snapshot: ContestSnapshot) -> list[Object]:
    """The problems; those that only the scoreboard shows have a label and nothing else."""
    rows = [row for row in snapshot.problems if row.problem.problem_id in snapshot.labels]
    return [_problem(snapshot, row, ordinal) for ordinal, row in enumerate(rows, 1)]


def _problem(snapshot: ContestSnapshot, row: ContestProblemRow, ordinal: int) -> Object:
    problem, label = row.problem, row.problem.label
    if problem.problem_id not in snapshot.audience.problem_ids:
        return {"id": label, "label": label, "name": label, "ordinal": ordinal}
    definition = snapshot.definitions.get(problem.revision_id)
    return without_nulls(
        {
            "id": label,
            "uuid": problem.problem_id,
            "label": label,
            "name": row.title,
            "ordinal": ordinal,
            "rgb": problem.rgb,
            "color": problem.color,
            "max_score": None if snapshot.is_pass_fail else points_number(problem.points_micro),
            **(_definition(snapshot, label, definition) if definition else {}),
        }
    )


def _definition(snapshot: ContestSnapshot, label: str, problem: Problem) -> Object:
    root, limits = f"contests/{snapshot.contest.slug}/problems/{label}", problem.limits
    attachments = [file_reference(f"{root}/attachments/{item.name}", item.name) for item in problem.attachments]
    has_pdf = any(item.format == "pdf" for item in problem.statements)
    statement = file_reference(f"{root}/statement", f"{label}.pdf", "application/pdf")
    return {
        "time_limit": limits.run.cpu_ms / 1000,
        "memory_limit": _round_up(limits.run.memory_bytes, MIB),
        "output_limit": _round_up(limits.run.output_bytes, MIB),
        "code_limit": _round_up(limits.code_bytes, _KIB),
        "test_data_count": len(problem.cases),
        "statement": [statement] if has_pdf else None,
        "attachments": attachments or None,
    }


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit)


def file_reference(href: str, filename: str, mime: str = "application/octet-stream") -> Object:
    """A file; its address is relative to the root of the API."""
    return {"href": href, "filename": filename.rpartition("/")[2], "mime": mime, "tag": []}


def _image(snapshot: ContestSnapshot, href: str, digest: str | None) -> list[Object] | None:
    info: ImageInfo | None = snapshot.images.get(digest or "")
    if info is None:
        return None
    name = f"{href.rpartition('/')[2]}.{info.media_type.rpartition('/')[2]}"
    return [file_reference(href, name, info.media_type) | {"width": info.width, "height": info.height}]


def groups(snapshot: ContestSnapshot) -> list[Object]:
    """The groups, and that of the main scoreboard, which has all ranked teams."""
    main = {"id": MAIN_GROUP_ID, "name": "Main scoreboard", "type": "scoreboard"}
    return [main, *(_group(item) for item in snapshot.shown_groups.values())]


def _group(row: ContestGroupRow) -> Object:
    return without_nulls({"id": row.code, "icpc_id": row.icpc_id, "name": row.name})


def organizations(snapshot: ContestSnapshot) -> list[Object]:
    return [_organization(snapshot, row) for row in snapshot.organizations.values()]


def _organization(snapshot: ContestSnapshot, row: OrganizationRow) -> Object:
    href = f"contests/{snapshot.contest.slug}/organizations/{row.code}/logo"
    return without_nulls(
        {
            "id": row.code,
            "icpc_id": row.icpc_id,
            "name": row.name,
            "formal_name": row.formal_name,
            "country": row.country if _COUNTRY.fullmatch(row.country or "") else None,
            "logo": _image(snapshot, href, row.logo_digest),
        }
    )


def teams(snapshot: ContestSnapshot) -> list[Object]:
    """The teams. Those without a rank are hidden: they are not on the scoreboard."""
    return [_team(snapshot, row) for row in snapshot.participants.values()]


def _team(snapshot: ContestSnapshot, row: ParticipantRow) -> Object:
    team = snapshot.teams.get(row.team_id or "")
    organization = snapshot.organizations.get(row.organization_id or "")
    codes = [item.code for item in snapshot.groups_of.get(row.id, ()) if item.id in snapshot.shown_groups]
    is_ranked = snapshot.is_ranked(row)
    main = [MAIN_GROUP_ID] if is_ranked else []
    href = f"contests/{snapshot.contest.slug}/teams/{row.code}/photo"
    return without_nulls(
        {
            "id": row.code,
            "icpc_id": team.icpc_id if team else None,
            "name": row.name,
            "label": row.label or row.code,
            "display_name": row.name,
            "organization_id": organization.code if organization else None,
            "group_ids": [*main, *codes],
            "hidden": not is_ranked,
            "photo": _image(snapshot, href, team.photo_digest) if team else None,
        }
    )


def persons(snapshot: ContestSnapshot) -> list[Object]:
    """The people: all for the jury, else the own team."""
    found: dict[str, list[CcsPersonRow]] = {}
    for row in _shown_people(snapshot):
        found.setdefault(row.user_id, []).append(row)
    return [_person(snapshot, rows) for rows in found.values()]


def _person(snapshot: ContestSnapshot, rows: Sequence[CcsPersonRow]) -> Object:
    codes = [snapshot.participants[row.participant_id].code for row in rows if row.participant_id]
    roles = [str(row.role) for row in rows if row.role is not None]
    return without_nulls(
        {
            "id": rows[0].user_id,
            "name": rows[0].display_name or rows[0].user_name,
            "role": "contestant" if codes else "staff",
            "team_ids": codes or None,
            "title": ", ".join(roles) or None,
        }
    )


def accounts(snapshot: ContestSnapshot) -> list[Object]:
    """The accounts: all for the jury, else the own one; never with a password."""
    found: dict[str, list[CcsPersonRow]] = {}
    for row in _shown_people(snapshot):
        if snapshot.audience.sees_all or row.user_id == snapshot.audience.user_id:
            found.setdefault(row.user_id, []).append(row)
    return [_account(snapshot, rows) for rows in found.values()]


def _account(snapshot: ContestSnapshot, rows: Sequence[CcsPersonRow]) -> Object:
    codes = [snapshot.participants[row.participant_id].code for row in rows if row.participant_id]
    roles = {row.role for row in rows}
    kind = next((name for role, name in _ACCOUNT_TYPES if role in roles), "team")
    return without_nulls(
        {
            "id": rows[0].user_id,
            "username": rows[0].user_name,
            "name": rows[0].display_name,
            "type": kind,
            "team_id": codes[0] if codes else None,
            "person_id": rows[0].user_id,
        }
    )


def _shown_people(snapshot: ContestSnapshot) -> list[CcsPersonRow]:
    audience = snapshot.audience
    shown = snapshot.participants.keys() if audience.sees_all else audience.own.keys() & snapshot.participants.keys()
    return [
        row
        for row in snapshot.people
        if (row.participant_id in shown if row.participant_id else audience.sees_all or row.user_id == audience.user_id)
    ]


def _time(us: int | None) -> str | None:
    return None if us is None else format_time(us)


def _reltime(us: int | None) -> str | None:
    return None if us is None else format_reltime(us)
