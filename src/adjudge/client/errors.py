"""What can go wrong between a program and a server.

::

    ClientError
    ├── Unreachable        no answer came
    ├── Misunderstood      an answer came that is none of Adjudge's
    ├── WaitedTooLong      the time that the caller gave is over
    └── ApiError           the server said no: status, code, detail, request_id
        ├── Rejected            400, 413, 415  the request cannot be used
        ├── NotLoggedIn         401
        ├── NotAllowed          403
        ├── Missing             404
        ├── Conflicting         409
        ├── Throttled           429            with retry_after_sec
        └── ServerTrouble       5xx
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.client.sans_io import HttpResponse


class ClientError(Exception):
    """Something went wrong between here and the server."""


class UnreachableError(ClientError):
    """No answer came."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        """Whether the server may have acted on the request all the same."""


class BadResponseError(ClientError):
    """The answer is none of Adjudge's; the address may be wrong."""


class WaitTimeoutError(ClientError):
    """The time that the caller gave is over, and what was waited for has not ended."""


@dataclass(frozen=True, slots=True)
class ApiErrorDetails:
    """What a server says when it says no; the reference of errors lists the codes."""

    status: int
    code: str
    detail: str
    request_id: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[Mapping[str, Any], ...] = ()
    """One entry per wrong field: ``field`` and ``message``."""
    retry_after_sec: float | None = None


class ApiError(ClientError):
    """The server said no."""

    def __init__(self, refusal: ApiErrorDetails) -> None:
        super().__init__(f"{refusal.detail} [{refusal.code}]")
        self.refusal = refusal

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return self.refusal.status

    @property
    def code(self) -> str:
        """The stable code."""
        return self.refusal.code

    @property
    def detail(self) -> str:
        """What is wrong and what to do, for people."""
        return self.refusal.detail

    @property
    def request_id(self) -> str:
        """What to ask the operator about."""
        return self.refusal.request_id

    @property
    def retry_after_sec(self) -> float | None:
        """When to come back, where the server said so."""
        return self.refusal.retry_after_sec


class InvalidRequestError(ApiError):
    """The request cannot be used as it is."""


class AuthenticationError(ApiError):
    """The server does not know who is asking."""


class PermissionDeniedError(ApiError):
    """The server knows who is asking, and they may not."""


class NotFoundError(ApiError):
    """There is no such object, or it is not the caller's to know of."""


class ConflictError(ApiError):
    """Somebody else changed it first."""


class RateLimitedError(ApiError):
    """Not now."""


class ServerError(ApiError):
    """The server failed."""


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
}


def error_from_response(answer: HttpResponse) -> ApiError:
    """The error that an answer stands for; a proxy's answer, which is no problem document, gets a code of its own."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {}
    refusal = ApiErrorDetails(
        status=answer.status,
        code=str(document.get("code", f"HTTP_{answer.status}")),
        detail=str(document.get("detail", f"HTTP status {answer.status} without an error document.")),
        request_id=str(document.get("request_id") or answer.headers.get("x-request-id", "")),
        fields=document.get("fields") or {},
        errors=tuple(document.get("errors") or ()),
        retry_after_sec=retry_after_sec(answer),
    )
    usual = ServerError if answer.status >= 500 else InvalidRequestError
    return _BY_STATUS.get(answer.status, usual)(refusal)


def retry_after_sec(answer: HttpResponse) -> float | None:
    """When the server wants to be asked again; a date, which Adjudge never sends, is passed over."""
    try:
        return max(0.0, float(answer.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
