"""Sending what is stored as it is: cached bytes with their ETag, and files.

The lean path: no model is built and nothing is encoded for what the cache holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from adjudge.cache.entry import CachedValue

_REVALIDATE: Final = b"private, no-cache"
"""Kept by whoever asked, asked about every time: a 304 costs no body, and a change is seen at once."""
_VARY: Final = b"Accept-Language, Authorization, Cookie"


class CachedResponse(Response):
    """Bytes that are ready. Headers are laid out once, without going through strings."""

    def __init__(self, found: CachedValue, status: int = 200) -> None:
        self.status_code = status
        self.background = None
        self.body = found.body if status == 200 else b""
        self.raw_headers = [
            (b"etag", found.etag.encode("latin-1")),
            (b"cache-control", _REVALIDATE),
            (b"vary", _VARY),
        ]
        if status == 200:
            self.raw_headers += [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(found.body)).encode()),
            ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Send both messages."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def request_etag(request: Request) -> str:
    """What whoever asks has already."""
    return request.headers.get("if-none-match", "")


def conditional_response(if_none_match: str, found: CachedValue) -> Response:
    """The bytes, or 304 for whoever has them."""
    if if_none_match and _matches(if_none_match, found.etag):
        return CachedResponse(found, 304)
    return CachedResponse(found)


def _matches(given: str, etag: str) -> bool:
    """Whether one of the ETags that somebody has is ours; weak ones compare as strong ones do here."""
    if given.strip() == "*":
        return True
    return any(item.strip().removeprefix("W/") == etag for item in given.split(","))


def file_response(pieces: AsyncIterator[bytes], *, name: str, size_bytes: int, digest: str) -> Response:
    """A file to be saved, never run: whatever is in it, no browser shows it as a page of ours."""
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
        "Content-Length": str(size_bytes),
        "ETag": f'"{digest}"',
        "Cache-Control": "private, no-cache",
    }
    return StreamingResponse(pieces, headers=headers, media_type=_type_of(name))


_PICTURES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}


def _type_of(name: str) -> str:
    """Pictures may be shown inside a page; everything else is bytes."""
    return _PICTURES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
