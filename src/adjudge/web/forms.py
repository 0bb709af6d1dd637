"""Reads form fields with type and length checks."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.datastructures import UploadFile

from adjudge.domain.errors import InvalidInput

_LONGEST: Final = 4_000
_LARGEST: Final = 2**31 - 1


async def text(request: Request, name: str, *, limit: int = _LONGEST) -> str:
    """A text field; empty if absent."""
    value = (await request.form()).get(name, "")
    if not isinstance(value, str):
        raise InvalidInput(f"{name}: expected text, got a file.", field=name)
    if len(value) > limit:
        raise InvalidInput(f"{name}: {len(value)} characters; at most {limit} allowed.", field=name)
    return value


async def number(request: Request, name: str) -> int:
    """A field with a whole number, for example a version."""
    given = await text(request, name, limit=20)
    if not (given.isascii() and given.isdecimal()) or int(given) > _LARGEST:
        raise InvalidInput(f"{name}: expected a number.", field=name)
    return int(given)


async def checked_values(request: Request, name: str) -> list[str]:
    return [value for value in (await request.form()).getlist(name) if isinstance(value, str)]


async def upload(request: Request, name: str) -> UploadFile | None:
    value = (await request.form()).get(name)
    return value if isinstance(value, UploadFile) and value.filename else None
