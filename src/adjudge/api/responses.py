"""Responses with stored content: cached bytes with their ETag, and files.

Cached content is sent without building a model or encoding anything.
"""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from adjudge.cache.entry import CachedValue

_REVALIDATE: Final = b"private, no-cache"
"""The client may keep the response but must revalidate it: a 304 has no body, and changes are visible at once."""
_VARY: Final = b"Accept-Language, Authorization, Cookie"
_PACK_FROM: Final = 4_096
"""Smaller documents are sent as they are."""


class CachedResponse(Response):
    """Cached bytes. The raw headers are built directly, which is faster than through strings."""

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
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def request_etag(request: Request) -> str:
    """The value of ``If-None-Match``; empty if it is missing."""
    return request.headers.get("if-none-match", "")


def conditional_response(if_none_match: str, found: CachedValue) -> Response:
    """The cached response, or 304 if the client has it already."""
    if if_none_match and _matches(if_none_match, found.etag):
        return CachedResponse(found, 304)
    return CachedResponse(found)


def packed_response(request: Request, found: CachedValue) -> Response:
    """The same for a document that is made for each request: a large one is compressed for clients that accept it.

    The ETag of compressed content is weak, because it names the document and not these bytes.
    """
    accepts = "gzip" in request.headers.get("accept-encoding", "")
    response = conditional_response(request_etag(request), found)
    if response.status_code != 200 or not accepts or len(found.body) < _PACK_FROM:
        return response
    headers = {
        "ETag": f"W/{found.etag}",
        "Cache-Control": _REVALIDATE.decode(),
        "Vary": f"Accept-Encoding, {_VARY.decode()}",
        "Content-Encoding": "gzip",
    }
    return Response(gzip.compress(found.body, 1, mtime=0), headers=headers, media_type="application/json")


def _matches(given: str, etag: str) -> bool:
    """Whether one of the given ETags matches; weak ones are compared like strong ones."""
    if given.strip() == "*":
        return True
    return any(item.strip().removeprefix("W/") == etag for item in given.split(","))


def file_response(pieces: AsyncIterator[bytes], *, name: str, size_bytes: int, digest: str) -> Response:
    """A file as a download, so that no browser shows its content as a page of this origin."""
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
        "Content-Length": str(size_bytes),
        "ETag": f'"{digest}"',
        "Cache-Control": "private, no-cache",
    }
    return StreamingResponse(pieces, headers=headers, media_type=_media_type(name))


_EMBEDDABLE_TYPES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}


def _media_type(name: str) -> str:
    """Pictures and PDF files keep their type, so that pages can embed them; other files are plain bytes."""
    return _EMBEDDABLE_TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
