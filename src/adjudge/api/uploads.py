"""File uploads: the body itself, or the file of a form. Neither is held in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from adjudge.domain.errors import InvalidInput

_PIECE_BYTES: Final = 256 * 1024
_FORM_BYTES: Final = 64 * 1024
"""Maximum size of a form without its file."""
_FIELD: Final = "package"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that is being received."""

    file_name: str
    pieces: AsyncIterable[bytes]


@asynccontextmanager
async def open_upload(request: Request, file_name: str, max_bytes: int) -> AsyncIterator[Upload]:
    """Open the file of a request, from the body or from a form."""
    if not is_form(request):
        yield Upload(file_name, request.stream())
        return
    async with open_form(request, max_bytes, _FIELD) as form:
        upload = form_file(form, _FIELD)
        yield Upload(file_name or upload.file_name, upload.pieces)


def is_form(request: Request) -> bool:
    """Whether the body is a form with files."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


@asynccontextmanager
async def open_form(request: Request, max_bytes: int, field: str) -> AsyncIterator[FormData]:
    """A form with one file, in ``field``; errors name it."""
    if not is_form(request):
        raise InvalidInput(f"{field}: expected a form (multipart/form-data) with a file.", field=field)
    stream = _bounded(request.stream(), max_bytes + _FORM_BYTES, field)
    try:
        form = await MultiPartParser(request.headers, stream, max_files=1).parse()
    except MultiPartException as error:
        raise InvalidInput(f"Malformed form: {error.message}", field=field) from error
    try:
        yield form
    finally:
        await form.close()


def form_file(form: FormData, *fields: str) -> Upload:
    """The file of a form, in one of the fields."""
    file = next((form[field] for field in fields if field in form), None)
    if not isinstance(file, UploadFile):
        raise InvalidInput(f"{fields[0]}: expected a file upload in this field.", field=fields[0])
    return Upload(file.filename or "", iter_file(file))


def form_text(form: FormData, field: str) -> str:
    """A text field; empty if it is missing."""
    value = form.get(field, "")
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: expected text, got a file.", field=field)
    return value


async def _bounded(pieces: AsyncIterable[bytes], max_bytes: int, field: str) -> AsyncGenerator[bytes, None]:
    total = 0
    async for piece in pieces:
        total += len(piece)
        if total > max_bytes:
            raise InvalidInput(f"{field}: exceeds {max_bytes} bytes.", field=field)
        yield piece


async def iter_file(file: UploadFile) -> AsyncIterator[bytes]:
    """The content of an uploaded form file, in chunks."""
    while piece := await file.read(_PIECE_BYTES):
        yield piece
