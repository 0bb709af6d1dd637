"""Page: the accounts that were made for a contest. Passwords are shown once, as cards to print."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from adjudge.api.auth import require_permission
from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.domain.errors import AdjudgeError, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.services.contest_accounts import AccountCard, ContestAccountService
from adjudge.services.viewer import Viewer
from adjudge.web import forms
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import no_store, page_router, redirect
from adjudge.web.routes.contest_participants import TAB, split

Member = Annotated[Viewer, require_permission(Permission.CONTEST_JOIN)]
_PAGE: Final = 200
_FIELDS: Final = ("prefix", "participants", "names", "reason")


def router(page: ContestPageRenderer, accounts: ContestAccountService) -> APIRouter:
    """The page of accounts."""
    routes = page_router(page.pages)

    async def show(request: Request, viewer: Viewer, slug: str, after: str = "", **shown: Any) -> Response:
        view, rows = await accounts.list_accounts(viewer, slug, after=after, limit=_PAGE)
        empty = dict.fromkeys(_FIELDS, "")
        given = {"error": None, "cards": None, **shown, "given": empty | shown.get("given", {})}
        status = given["error"].http_status if given["error"] else 200
        more = f"cursor={encode_cursor([rows[-1].user_name])}" if len(rows) == _PAGE else ""
        answer = await page.render(
            request, view, "contest_accounts.html", tab=TAB, status=status, rows=rows, more=more, **given
        )
        return answer if given["cards"] is None else no_store(answer)

    @routes.get("/contests/{slug}/accounts")
    async def listed(request: Request, viewer: Member, slug: str, cursor: str | None = None) -> Response:
        position = decode_cursor(cursor, [str])
        return await show(request, viewer, slug, str(position[0]) if position else "")

    @routes.post("/contests/{slug}/accounts")
    async def change(request: Request, viewer: Member, slug: str) -> Response:
        do = await forms.text(request, "do", limit=20)
        given = {name: (await forms.text(request, name, limit=100_000)).strip() for name in _FIELDS}
        try:
            cards = await _change(accounts, viewer, slug, do, given)
        except NotFound:
            raise
        except AdjudgeError as error:
            return await show(request, viewer, slug, error=error, given=given)
        if cards is None:
            return redirect(f"/contests/{slug}/accounts", done="saved")
        return await show(request, viewer, slug, cards=cards)

    return routes


async def _change(
    accounts: ContestAccountService, viewer: Viewer, slug: str, do: str, given: dict[str, str]
) -> list[AccountCard] | None:
    """Do what the pressed button says; new passwords, if there are any."""
    names = split(given["names"])
    if do == "create":
        return await accounts.create(
            viewer, slug, prefix=given["prefix"], participants_given=split(given["participants"])
        )
    if do == "renew":
        return await accounts.renew_passwords(viewer, slug, names)
    if do not in ("disable", "enable"):
        raise InvalidInput("do: expected create, renew, disable or enable.", field="do")
    await accounts.set_disabled(viewer, slug, disabled=do == "disable", names=names, reason=given["reason"])
    return None
