"""Photos of teams."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.routes.contests import Member, Reader
from adjudge.api.routing import api_router
from adjudge.services.team_photos import Photo, TeamPhotoService

_PICTURE: Final = {"schema": {"type": "string", "format": "binary"}}
_TYPES: Final = ("image/png", "image/jpeg", "image/webp")
_UPLOAD: Final = {"requestBody": {"required": True, "content": dict.fromkeys(_TYPES, _PICTURE)}}
_FOUND: Final = {"description": "The picture.", "content": dict.fromkeys(_TYPES, _PICTURE)}
_NO_SCRIPTS: Final = "default-src 'none'; sandbox"


def router(photos: TeamPhotoService) -> APIRouter:
    routes = api_router("contests", "/contests/{contest}/participants/{participant}")

    @routes.get("/photo", summary="Get the photo of a team", responses={200: _FOUND}, response_class=Response)
    async def read(contest: str, participant: str, viewer: Reader) -> Response:
        return photo_response(await photos.get(viewer, contest, participant))

    @routes.put(
        "/photo",
        status_code=204,
        summary="Set the photo of a team",
        description="The body is a PNG, JPEG or WebP picture of at most 4 MiB. For organisers.",
        openapi_extra=_UPLOAD,
    )
    async def save(contest: str, participant: str, request: Request, viewer: Member) -> None:
        await photos.save(viewer, contest, participant, request.stream())

    @routes.delete("/photo", status_code=204, summary="Remove the photo of a team")
    async def delete(contest: str, participant: str, viewer: Member) -> None:
        await photos.delete(viewer, contest, participant)

    return routes


def photo_response(photo: Photo) -> Response:
    """A picture with the type of its content; nothing in it can run."""
    headers = {
        "ETag": f'"{photo.digest}"',
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": _NO_SCRIPTS,
        "X-Content-Type-Options": "nosniff",
    }
    return Response(photo.data, headers=headers, media_type=photo.media_type)
