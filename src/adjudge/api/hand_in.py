"""The short way in: JSON handed in by the holder of a token reaches the desk before any route is searched for.

It does what the two routes do, by the same models and the same actions. Whatever is less simple (a form, a session, a
token that does not do, a body that is wrong in any way) goes on to the routes with its body as it came, so that the two
cannot answer differently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adjudge.api import errors
from adjudge.api.auth import parse_bearer_token
from adjudge.api.parts import Parts
from adjudge.api.routes.submissions import _accepted_response, request_context
from adjudge.api.schema.submissions import SubmissionBatchCreate, SubmissionCreate
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.permissions import Permission
from adjudge.services import submit as submit_service
from adjudge.services.submit import SubmitRequest
from adjudge.services.viewer import Viewer

_TOKEN, _TYPE, _KEY = b"authorization", b"content-type", b"idempotency-key"
_WATCHED: Final = frozenset({_TOKEN, _TYPE, _KEY})
_JSON: Final = b"application/json"


class HandIn:
    """Plain ASGI, in front of the routes and inside everything that surrounds them."""

    def __init__(self, app: ASGIApp, *, parts: Parts, root: str) -> None:
        self._app = app
        self._parts = parts
        self._ways: dict[str, tuple[Callable[[bytes], Any], Callable[..., Any]]] = {
            f"{root}/submissions": (_one, submit_service.submit),
            f"{root}/submissions:batch": (_many, submit_service.submit_batch),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the routes do so."""
        way = self._ways.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if way is None:
            await self._app(scope, receive, send)
            return
        kept = _Kept(receive)
        try:
            response = await self._answer(scope, kept, *way)
        except AdjudgeError as error:
            response = errors.handle_error(error, errors.get_request_id(Request(scope)))
        if response is None:
            await self._app(scope, kept.receive, send)
        else:
            await response(scope, receive, send)

    async def _answer(
        self, scope: Scope, kept: _Kept, read: Callable[[bytes], Any], submit: Callable[..., Any]
    ) -> Response | None:
        """What the route would answer; nothing where that is not simple."""
        known = await self._known(scope)
        handed = None if known is None else _read(read, await kept.body())
        if known is None or handed is None:
            return None
        viewer, key = known
        return _accepted_response(await submit(self._parts, viewer, handed, request_context(Request(scope), key)))

    async def _known(self, scope: Scope) -> tuple[Viewer, str | None] | None:
        """Who is asking, and by which idempotency key; nothing where the headers do not say it in the simplest way."""
        watched = [(name, value) for name, value in scope["headers"] if name in _WATCHED]
        given = dict(watched)
        if len(given) < len(watched) or _TOKEN not in given or given.get(_TYPE) != _JSON:
            return None
        secret = parse_bearer_token(given[_TOKEN].decode("latin-1"))
        viewer = None if secret is None else await self._parts.credentials.viewer_for_token(secret)
        if viewer is None or not viewer.can(Permission.SUBMISSION_CREATE):
            return None
        return viewer, given[_KEY].decode("latin-1") if _KEY in given else None


class _Kept:
    """A body that is kept while it is read, for whoever may have to read it once more."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: deque[Message] = deque()
        self._failed: HTTPException | None = None

    async def body(self) -> bytes | None:
        """All of it; nothing if it did not come, or was too large."""
        more = True
        while more:
            try:
                message = await self._receive()
            except HTTPException as error:
                self._failed = error
                return None
            self._messages.append(message)
            if message["type"] != "http.request":
                return None
            more = message.get("more_body", False)
        return b"".join([message.get("body", b"") for message in self._messages])

    async def receive(self) -> Message:
        """What came, in the order in which it did, then what is still to come."""
        if self._messages:
            return self._messages.popleft()
        if self._failed is not None:
            raise self._failed
        return await self._receive()


def _read(read: Callable[[bytes], Any], body: bytes | None) -> Any:
    try:
        return None if body is None else read(body)
    except ValidationError:
        return None


def _one(body: bytes) -> SubmitRequest:
    item = SubmissionCreate.model_validate_json(body)
    return SubmitRequest(item.problem, item.language, item.source)


def _many(body: bytes) -> list[SubmitRequest]:
    return [
        SubmitRequest(item.problem, item.language, item.source)
        for item in SubmissionBatchCreate.model_validate_json(body).items
    ]
