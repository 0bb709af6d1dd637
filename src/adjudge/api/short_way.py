"""The short way to a cached problem: what is read most is answered before any route is searched for.

It does what the route does (who is asking, may they, is it cached, do they have it already) and nothing else; whatever
is not as simple as that goes the long way, to the route itself. So the two cannot answer differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from adjudge.api.actions.catalogue import cached_detail, preferred
from adjudge.api.parts import Parts
from adjudge.api.sending import stored
from adjudge.api.viewer import viewer_of
from adjudge.domain.access import Permission
from adjudge.domain.errors import AdjudgeError

_WATCHED: Final = {b"accept-language", b"if-none-match", b"authorization", b"cookie"}
"""The headers that matter to the answer."""


class ShortWay:
    """Inside the envelope, in front of the routes."""

    def __init__(self, app: ASGIApp, *, parts: Parts, root: str) -> None:
        self._app, self._parts = app, parts
        self._prefix: Final = f"{root}/problems/"
        self._visitors_may_read = parts.settings.accounts.visitors_may_read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache, or pass on."""
        answer = await self._answer(scope)
        await (answer or self._app)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
            return None
        path: str = scope["path"]
        name = path[len(self._prefix) :]
        if not path.startswith(self._prefix) or "/" in name or ":" in name:
            return None
        given = {key: value for key, value in scope["headers"] if key in _WATCHED}
        languages = preferred("", given.get(b"accept-language", b"").decode("latin-1"))
        found = cached_detail(self._parts, name, languages)
        if found is None or not await self._may_read(scope, given):
            return None
        return stored(given.get(b"if-none-match", b"").decode("latin-1"), found)

    async def _may_read(self, scope: Scope, given: Mapping[bytes, bytes]) -> bool:
        """Whether whoever asks may read problems. A wrong credential is the long way's to refuse."""
        if b"authorization" not in given and b"cookie" not in given:
            return self._visitors_may_read
        try:
            return (await viewer_of(Request(scope))).may(Permission.PROBLEM_READ)
        except AdjudgeError:
            return False
