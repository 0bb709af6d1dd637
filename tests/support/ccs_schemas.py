"""JSON Schemas of the ICPC Contest API, versions 2023-06 and 2026-01, written from the text of the specification.

Every object is closed (``additionalProperties: false``) except for ``shortname``, which clients of DOMjudge need. A
property that ``access`` does not list for a reader may be missing, so that only what every reader sees is required.
"""

from __future__ import annotations

from typing import Any, Final

from jsonschema import Draft202012Validator

from adjudge.contests.ccs.version import CcsVersion

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
NUMBER: Final[Schema] = {"type": "number", "minimum": 0}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
ID: Final[Schema] = {"type": "string", "pattern": r"^(?=.{1,36}$)[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_-])?$"}
IDS: Final[Schema] = {"type": "array", "items": ID, "uniqueItems": True}
TIME: Final[Schema] = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"}
RELTIME: Final[Schema] = {"type": "string", "pattern": r"^-?\d+:[0-5]\d:[0-5]\d\.\d{3}$"}
RGB: Final[Schema] = {"type": "string", "pattern": r"^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"}
SECONDS: Final[Schema] = {"type": "number", "minimum": 0, "multipleOf": 0.001}
OLD, NEW = CcsVersion.V2023_06, CcsVersion.V2026_01


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def closed(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def files(version: CcsVersion, mime: str) -> Schema:
    """References to files; those of images have a size."""
    properties = {"href": TEXT, "filename": TEXT, "mime": {"type": "string", "pattern": mime}}
    size = {"width": {"type": "integer", "minimum": 1}, "height": {"type": "integer", "minimum": 1}}
    if version is NEW:
        properties["tag"] = array(TEXT)
    if mime == IMAGE:
        return array(closed(properties | size))
    return array(closed(properties, {"hash": TEXT}))


IMAGE: Final = r"^image/(png|jpeg|webp|svg\+xml)$"
ZIP: Final = r"^application/zip$"
PDF: Final = r"^application/pdf$"


def information(version: CcsVersion) -> Schema:
    provider = closed({"name": TEXT}, {"version": TEXT})
    return closed({"version": {"const": str(version)}, "version_url": TEXT}, {"provider": provider})


def access(_: CcsVersion) -> Schema:
    endpoint = closed({"type": TEXT, "properties": {**array(TEXT), "minItems": 1, "uniqueItems": True}})
    return closed({"capabilities": array(TEXT), "endpoints": array(endpoint)})


def contest(version: CcsVersion) -> Schema:
    """``penalty_time`` is that of pass-fail contests alone; a start and a paused countdown exclude each other."""
    optional = {
        "formal_name": TEXT,
        "shortname": TEXT,
        "start_time": TIME,
        "countdown_pause_time": RELTIME,
        "scoreboard_freeze_duration": RELTIME,
        "scoreboard_thaw_time": TIME,
        "penalty_time": COUNT if version is OLD else RELTIME,
    }
    if version is NEW:
        optional["main_scoreboard_group_id"] = ID
    required = {"id": ID, "name": TEXT, "duration": RELTIME, "scoreboard_type": {"enum": ["pass-fail", "score"]}}
    is_score = {"properties": {"scoreboard_type": {"const": "score"}}}
    return closed(required, optional) | {
        "not": {"required": ["start_time", "countdown_pause_time"]},
        "if": is_score,
        "then": {"not": {"required": ["penalty_time"]}},
        "else": {"required": ["penalty_time"]},
    }


def judgement_types(version: CcsVersion) -> Schema:
    optional = {"penalty": BOOLEAN} | ({"simplified_judgement_type_id": ID} if version is NEW else {})
    known = {"enum": ["AC", "RE", "WA", "TLE", "RTE", "CE", "OLE", "MLE", "JE"]}
    return closed({"id": known, "name": TEXT, "solved": BOOLEAN}, optional)


def languages(_: CcsVersion) -> Schema:
    command = closed({"command": TEXT}, {"args": TEXT, "version": TEXT, "version_command": TEXT})
    required = {"id": ID, "name": TEXT, "entry_point_required": {"const": False}, "extensions": array(TEXT)}
    return closed(required, {"compiler": command, "runner": command})


def problems(version: CcsVersion) -> Schema:
    optional = {
        "uuid": TEXT,
        "rgb": RGB,
        "color": TEXT,
        "time_limit": SECONDS,
        "test_data_count": COUNT,
        "max_score": NUMBER,
        "statement": files(version, PDF),
    }
    if version is NEW:
        optional |= {"memory_limit": COUNT, "output_limit": COUNT, "code_limit": COUNT}
        optional |= {"attachments": files(version, ".")}
    return closed({"id": ID, "label": TEXT, "name": TEXT, "ordinal": COUNT}, optional)


def groups(_: CcsVersion) -> Schema:
    return closed({"id": ID, "name": TEXT}, {"icpc_id": TEXT, "type": TEXT})


def organizations(version: CcsVersion) -> Schema:
    country = {"type": "string", "pattern": "^[A-Z]{3}$"}
    optional = {"icpc_id": TEXT, "formal_name": TEXT, "country": country, "logo": files(version, IMAGE)}
    return closed({"id": ID, "name": TEXT}, optional)


def teams(version: CcsVersion) -> Schema:
    optional = {"icpc_id": TEXT, "display_name": TEXT, "organization_id": ID, "photo": files(version, IMAGE)}
    return closed({"id": ID, "name": TEXT, "label": TEXT, "group_ids": IDS, "hidden": BOOLEAN}, optional)


def persons(_: CcsVersion) -> Schema:
    """Those of teams have one."""
    role = {"enum": ["contestant", "coach", "staff", "other"]}
    return closed({"id": ID, "name": TEXT, "role": role}, {"team_ids": {**IDS, "minItems": 1}, "title": TEXT}) | {
        "if": {"properties": {"role": {"const": "contestant"}}},
        "then": {"required": ["team_ids"]},
    }


def accounts(_: CcsVersion) -> Schema:
    kind = {"enum": ["team", "judge", "admin", "analyst", "staff", "other"]}
    optional = {"name": TEXT, "team_id": ID, "person_id": ID}
    return closed({"id": ID, "username": TEXT, "type": kind}, optional) | {
        "if": {"properties": {"type": {"const": "team"}}},
        "then": {"required": ["team_id"]},
    }


def state(_: CcsVersion) -> Schema:
    names = ("started", "frozen", "ended", "thawed", "finalized", "end_of_updates")
    return closed(dict.fromkeys(names, nullable(TIME)))


def submissions(version: CcsVersion) -> Schema:
    archive = {**files(version, ZIP), "minItems": 1, "maxItems": 1}
    optional = {"language_id": ID, "problem_id": ID, "files": archive}
    if version is NEW:
        optional["account_id"] = ID
    return closed({"id": ID, "team_id": ID, "time": TIME, "contest_time": RELTIME}, optional)


def judgements(version: CcsVersion) -> Schema:
    """A judgement that has ended has a type and both times; one that has not has none of them."""
    ended = ["judgement_type_id", "end_time", "end_contest_time"]
    optional = {
        "judgement_type_id": ID,
        "score": NUMBER,
        "end_time": TIME,
        "end_contest_time": RELTIME,
        "max_run_time": SECONDS,
    }
    required = {"id": ID, "submission_id": ID, "start_time": TIME, "start_contest_time": RELTIME}
    if version is NEW:
        required["current"] = BOOLEAN
        optional["simplified_judgement_type_id"] = ID
    return closed(required, optional) | {"dependentRequired": dict.fromkeys(ended, ended)}


def runs(_: CcsVersion) -> Schema:
    return closed(
        {
            "id": ID,
            "judgement_id": ID,
            "ordinal": {"type": "integer", "minimum": 1},
            "judgement_type_id": ID,
            "time": TIME,
            "contest_time": RELTIME,
            "run_time": SECONDS,
        }
    )


def clarifications(version: CcsVersion) -> Schema:
    """Teams write to the jury, never to teams or groups."""
    recipients = {"to_team_id": ID} if version is OLD else {"to_team_ids": IDS, "to_group_ids": IDS}
    optional = {"from_team_id": ID, "reply_to_id": ID, "problem_id": ID, **recipients}
    to_teams = {"anyOf": [{"required": [name]} for name in recipients]}
    return closed({"id": ID, "text": TEXT, "time": TIME, "contest_time": RELTIME}, optional) | {
        "not": {"allOf": [{"required": ["from_team_id"]}, to_teams]}
    }


def awards(_: CcsVersion) -> Schema:
    return closed({"id": ID, "citation": TEXT, "team_ids": IDS})


def commentary(_: CcsVersion) -> Schema:
    return closed({"id": ID, "time": TIME, "contest_time": RELTIME, "message": TEXT})


def scoreboard(version: CcsVersion) -> Schema:
    duration = COUNT if version is OLD else RELTIME
    pass_fail = closed({"num_solved": COUNT, "total_time": duration}, {"time": duration})
    score = closed({"score": NUMBER}, {"time": duration})
    counts = {"problem_id": ID, "num_judged": COUNT, "num_pending": COUNT}
    solved = closed(counts | {"solved": BOOLEAN}, {"time": duration})
    scored = closed(counts | {"score": NUMBER}, {"time": duration})
    row = closed(
        {
            "rank": {"type": "integer", "minimum": 1},
            "team_id": ID,
            "score": {"oneOf": [pass_fail, score]},
            "problems": array({"oneOf": [solved, scored]}),
        }
    )
    return closed({"time": TIME, "contest_time": RELTIME, "state": state(version), "rows": array(row)})


COLLECTIONS: Final = {
    "judgement-types": judgement_types,
    "languages": languages,
    "problems": problems,
    "groups": groups,
    "organizations": organizations,
    "teams": teams,
    "persons": persons,
    "accounts": accounts,
    "submissions": submissions,
    "judgements": judgements,
    "runs": runs,
    "clarifications": clarifications,
    "awards": awards,
    "commentary": commentary,
}
"""The schema of an object of each collection."""
SINGLETONS: Final = {"access": access, "account": accounts, "state": state, "scoreboard": scoreboard}
ERROR: Final = closed({"code": {"type": "integer"}, "message": TEXT})


def errors_of(document: Any, schema: Schema) -> list[str]:
    """Where a document does not conform to a schema."""
    validator = Draft202012Validator(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
