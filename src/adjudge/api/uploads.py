"""File uploads: the body itself, or the file of a form. Neither is held in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.datastructures import UploadFile
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
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        yield Upload(file_name, request.stream())
        return
    parser = MultiPartParser(request.headers, _bounded(request.stream(), max_bytes + _FORM_BYTES), max_files=1)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise InvalidInput(f"Malformed form: {error.message}", field=_FIELD) from error
    try:
        file = form.get(_FIELD)
        if not isinstance(file, UploadFile):
            raise InvalidInput(f"{_FIELD}: expected a file upload in this field.", field=_FIELD)
        yield Upload(file_name or file.filename or "", iter_file(file))
    finally:
        await form.close()


async def _bounded(pieces: AsyncIterable[bytes], max_bytes: int) -> AsyncGenerator[bytes, None]:
    total = 0
    async for piece in pieces:
        total += len(piece)
        if total > max_bytes:
            raise InvalidInput(f"{_FIELD}: exceeds {max_bytes} bytes.", field=_FIELD)
        yield piece


async def iter_file(file: UploadFile) -> AsyncIterator[bytes]:
    """The content of an uploaded form file, in chunks."""
    while piece := await file.read(_PIECE_BYTES):
        yield piece
