"""Submissions as forms, which DOMjudge's ``submit`` sends: ``problem``, ``language``, ``entry_point``, ``code[]``."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request

from adjudge.api.routes.submission_files import UPLOADS_MAX, read_uploads
from adjudge.api.uploads import form_text
from adjudge.domain.errors import InvalidInput
from adjudge.services.ccs_changes import CcsSubmission

_FIELDS_MAX: Final = 16
_REFUSED: Final = ("id", "time")
_TEXT: Final = {"type": "string"}
FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "problem": {**_TEXT, "examples": ["A"]},
        "language": {**_TEXT, "examples": ["cpp20"]},
        "entry_point": _TEXT,
        "team_id": {**_TEXT, "description": "For organisers, who submit for a team."},
        "code[]": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
    },
    "required": ["problem", "language", "code[]"],
}


async def read_multipart_submission(request: Request) -> CcsSubmission:
    """Read a form; fields have the names of DOMjudge or of the Contest API."""
    async with request.form(max_files=UPLOADS_MAX, max_fields=_FIELDS_MAX) as form:
        for name in _REFUSED:
            if name in form:
                raise InvalidInput(f"{name}: the server sets it; leave it out.", field=name)
        found = CcsSubmission(
            problem_id=form_text(form, "problem") or form_text(form, "problem_id"),
            language_id=form_text(form, "language") or form_text(form, "language_id"),
            files=await read_uploads([*form.getlist("code[]"), *form.getlist("code")]),
            entry_point=form_text(form, "entry_point"),
            team_id=form_text(form, "team_id"),
        )
    for name, value in (("problem", found.problem_id), ("language", found.language_id), ("code[]", found.files)):
        if not value:
            raise InvalidInput(f"{name}: missing form field.", field=name)
    return found
