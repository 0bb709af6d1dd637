"""Pages: the photo of a team, for organisers."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.uploads import iter_file
from adjudge.domain.errors import InvalidInput
from adjudge.services.team_photos import TeamPhotoService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.contest_settings import Member


def router(page: ContestPageRenderer, photos: TeamPhotoService) -> APIRouter:
    routes = page_router(page.pages)
    path = "/contests/{slug}/participants/{code}/photo"

    async def show(
        request: Request, viewer: Viewer, slug: str, code: str, error: InvalidInput | None = None
    ) -> Response:
        view, participant, has_photo = await photos.find_team(viewer, slug, code)
        return await page.render(
            request,
            view,
            "contest_photo.html",
            tab="/participants",
            status=error.http_status if error else 200,
            participant=participant,
            has_photo=has_photo,
            error=error,
        )

    @routes.get(path)
    async def photo(request: Request, viewer: Member, slug: str, code: str) -> Response:
        return await show(request, viewer, slug, code)

    @routes.post(path)
    async def save(request: Request, viewer: Member, slug: str, code: str) -> Response:
        file = await forms.upload(request, "photo")
        try:
            if file is None:
                raise InvalidInput("photo: choose a file.", field="photo")
            await photos.save(viewer, slug, code, iter_file(file))
        except InvalidInput as error:
            return await show(request, viewer, slug, code, error)
        return redirect(path.format(slug=slug, code=code), done="saved")

    @routes.post(path + "/delete")
    async def delete(viewer: Member, slug: str, code: str) -> Response:
        await photos.delete(viewer, slug, code)
        return redirect(path.format(slug=slug, code=code), done="deleted")

    return routes
