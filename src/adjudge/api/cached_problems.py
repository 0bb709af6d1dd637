"""Fast path for cached problems without routing and parameter parsing: 20 µs of CPU time per request instead of 128."""

from __future__ import annotations

from fastapi import Response
from starlette.types import Scope

from adjudge.api.accept_language import statement_languages
from adjudge.api.auth import parse_bearer_token
from adjudge.api.responses import conditional_response
from adjudge.domain.permissions import Permission
from adjudge.services.problems import ProblemService
from adjudge.services.viewer import ContestOnlyMode, CredentialCache


class CachedProblems:
    """Answers ``GET /problems/{problem}`` from the cache of this process, before the application is called.

    Only for visitors and known tokens, and without awaiting anything. Requests with a cookie or of another origin are
    left to the application, which checks sessions and adds CORS headers.
    """

    def __init__(
        self,
        root: str,
        problems: ProblemService,
        credentials: CredentialCache,
        contest_only: ContestOnlyMode,
        *,
        visitors_may_read: bool,
    ) -> None:
        self._contest_only = contest_only
        self._prefix = f"{root}/problems/"
        self._problems = problems
        self._credentials = credentials
        self._visitors_may_read = visitors_may_read

    def respond(self, scope: Scope) -> Response | None:
        """The response to a ``GET`` request, or None if the application must answer."""
        path: str = scope["path"]
        if not path.startswith(self._prefix) or scope["query_string"] or not self._contest_only.is_known_off:
            return None
        headers = dict(scope["headers"])
        if b"cookie" in headers or b"origin" in headers or not self._may_read(headers.get(b"authorization")):
            return None
        languages = statement_languages("", headers.get(b"accept-language", b"").decode("latin-1"))
        found = self._problems.peek(path.removeprefix(self._prefix), languages)
        if found is None:
            return None
        return conditional_response(headers.get(b"if-none-match", b"").decode("latin-1"), found)

    def _may_read(self, authorization: bytes | None) -> bool:
        if authorization is None:
            return self._visitors_may_read
        secret = parse_bearer_token(authorization.decode("latin-1"))
        viewer = self._credentials.cached_viewer_for_token(secret) if secret is not None else None
        return viewer is not None and viewer.can(Permission.PROBLEM_READ)
