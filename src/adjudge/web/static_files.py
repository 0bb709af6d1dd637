"""What browsers fetch besides pages: read once, named by content, kept by them for ever."""

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
"""Compressing less than this saves nothing."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it goes over the wire."""

    body: bytes
    packed: bytes | None
    media_type: str
    tag: str


class Assets:
    """The files of ``static/``, by name."""

    def __init__(self, folder: Path = FOLDER) -> None:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        self._assets = {path.relative_to(folder).as_posix(): _read(path) for path in files}

    def __contains__(self, name: str) -> bool:
        return name in self._assets

    def url(self, name: str) -> str:
        """The address of a file as it is now; a new content gets a new address."""
        return f"{ROOT}/{self._assets[name].tag}/{name}"

    def router(self) -> APIRouter:
        """Serve them."""
        routes = APIRouter(include_in_schema=False)

        @routes.get(ROOT + "/{tag}/{name:path}")
        async def read(request: Request, tag: str, name: str) -> Response:
            asset = self._assets.get(name)
            if asset is None:
                raise NotFound("file", name)
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
