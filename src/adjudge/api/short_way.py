"""The short way to a cached problem: what is read most is answered before any route is searched for.

It does what the route does (who is asking, may they, is it cached, do they have it already) and nothing else, at once
and without waiting for anything; whatever is not as simple as that goes the long way, to the route itself. So the two
cannot answer differently.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from starlette.responses import Response
from starlette.types import Scope

from adjudge.api.auth import parse_bearer_token
from adjudge.api.parts import Parts
from adjudge.api.responses import conditional_response
from adjudge.domain.permissions import Permission
from adjudge.services.problems import accepted_languages, cached_detail

_WATCHED: Final = {b"accept-language", b"if-none-match", b"authorization", b"cookie", b"origin"}
"""The headers that matter to the answer."""


class ShortWay:
    """Inside the envelope, in front of everything else."""

    def __init__(self, parts: Parts, root: str) -> None:
        self._parts = parts
        self._prefix: Final = f"{root}/problems/"
        self._visitors_may_read = parts.settings.accounts.visitors_may_read

    def answer(self, scope: Scope) -> Response | None:
        """The answer, from what this process remembers; nothing where that is not enough."""
        path: str = scope["path"]
        if not path.startswith(self._prefix) or scope["method"] != "GET" or scope["query_string"]:
            return None
        name = path[len(self._prefix) :]
        given = {key: value.decode("latin-1") for key, value in scope["headers"] if key in _WATCHED}
        if "/" in name or ":" in name or b"cookie" in given or b"origin" in given:
            return None
        found = cached_detail(self._parts, name, _languages(given.get(b"accept-language", "")[:200]))
        if found is None or not self._may_read(given.get(b"authorization")):
            return None
        return conditional_response(given.get(b"if-none-match", ""), found)

    def _may_read(self, authorization: str | None) -> bool:
        """Whether whoever asks is known to be allowed to. A credential that is new or wrong is the long way's."""
        if authorization is None:
            return self._visitors_may_read
        secret = parse_bearer_token(authorization)
        viewer = self._parts.credentials.known_by_token(secret) if secret is not None else None
        return viewer is not None and viewer.can(Permission.PROBLEM_READ)


@lru_cache(maxsize=1024)
def _languages(accepted: str) -> tuple[str, ...]:
    return accepted_languages("", accepted)
