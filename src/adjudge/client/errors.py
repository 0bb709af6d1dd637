"""Errors of the client.

::

    ClientError
    ├── UnreachableError            no response
    ├── BadResponseError            the response does not come from Adjudge
    ├── WaitTimeoutError            the timeout of a wait has passed
    └── ApiError                    an error response: status, code, detail, request_id
        ├── InvalidRequestError         400, 413, 415
        ├── AuthenticationError         401
        ├── PermissionDeniedError       403
        ├── NotFoundError               404
        ├── ConflictError               409
        ├── RateLimitedError            429, with retry_after_sec
        └── ServerError                 5xx
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.client.sans_io import HttpResponse


class ClientError(Exception):
    """Base of all errors of the client."""


class UnreachableError(ClientError):
    """No response."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        """Whether the server may have processed the request."""


class BadResponseError(ClientError):
    """The response does not come from Adjudge; the URL may be wrong."""


class WaitTimeoutError(ClientError):
    """The timeout of a wait has passed."""


@dataclass(frozen=True, slots=True)
class ApiErrorDetails:
    """The body of an error response; docs/reference/errors.md lists the codes."""

    status: int
    code: str
    detail: str
    request_id: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[Mapping[str, Any], ...] = ()
    """One entry per invalid field: ``field`` and ``message``."""
    retry_after_sec: float | None = None


class ApiError(ClientError):
    """The server returned an error."""

    def __init__(self, refusal: ApiErrorDetails) -> None:
        super().__init__(f"{refusal.detail} [{refusal.code}]")
        self.refusal = refusal

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.refusal.status

    @property
    def code(self) -> str:
        """The error code."""
        return self.refusal.code

    @property
    def detail(self) -> str:
        """The message."""
        return self.refusal.detail

    @property
    def request_id(self) -> str:
        """The request ID, for the operator."""
        return self.refusal.request_id

    @property
    def retry_after_sec(self) -> float | None:
        """The delay of Retry-After, if present."""
        return self.refusal.retry_after_sec


class InvalidRequestError(ApiError):
    """The request is invalid."""


class AuthenticationError(ApiError):
    """Authentication is missing or invalid."""


class PermissionDeniedError(ApiError):
    """Permission denied."""


class NotFoundError(ApiError):
    """The object does not exist, or the caller may not see it."""


class ConflictError(ApiError):
    """Conflict with a concurrent change or the current state."""


class RateLimitedError(ApiError):
    """Too many requests."""


class ServerError(ApiError):
    """Server error."""


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
}


def error_from_response(answer: HttpResponse) -> ApiError:
    """The error of a response; a response without an error document (from a proxy) gets the code HTTP_<status>."""
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
    """The seconds of Retry-After; a date, which Adjudge never sends, is ignored."""
    try:
        return max(0.0, float(answer.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
