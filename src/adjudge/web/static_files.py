"""Static files: read once, with their content hash in the URL, cached by browsers permanently."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.domain.errors import NotFound

FOLDER: Final = Path(__file__).parent / "static"
ROOT: Final = "/static"
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_SMALL: Final = 512
"""Smaller files are not compressed."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One static file."""

    body: bytes
    packed: bytes | None
    media_type: str
    tag: str


class Assets:
    """The files of ``static/`` by name. A file is read when it is first requested."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        self._read: dict[str, Asset] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def __getitem__(self, name: str) -> Asset:
        if name not in self._read:
            self._read[name] = _read(self._files[name])
        return self._read[name]

    def url(self, name: str) -> str:
        """The URL of a file, with its content hash."""
        return f"{ROOT}/{self[name].tag}/{name}"

    def router(self) -> APIRouter:
        routes = APIRouter(include_in_schema=False)

        @routes.get(ROOT + "/{tag}/{name:path}")
        async def read(request: Request, tag: str, name: str) -> Response:
            if name not in self:
                raise NotFound("file", name)
            asset = self[name]
            kept = _FOR_EVER if tag == asset.tag else "no-cache"
            headers = {"Cache-Control": kept, "Vary": "Accept-Encoding", "ETag": f'"{asset.tag}"'}
            if request.headers.get("If-None-Match") == headers["ETag"]:
                return Response(status_code=304, headers=headers)
            if asset.packed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
                return Response(
                    asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type
                )
            return Response(asset.body, headers=headers, media_type=asset.media_type)

        return routes


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    packs = len(body) > _SMALL and media_type.startswith(("text/", "image/svg", "application/j"))
    packed = gzip.compress(body, 9, mtime=0) if packs else None
    return Asset(body, packed, media_type, hashlib.sha256(body).hexdigest()[:12])
