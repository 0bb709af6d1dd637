"""Building blocks of operations: quoted paths, requests, and requests with decoded responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote

from adjudge.client.decode import decode, decode_list, json_body
from adjudge.client.models import Page
from adjudge.client.retry import ClientRetryPolicy, send_with_retries
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.domain.ids import new_id
from adjudge.schema.base import ResponseModel

T = TypeVar("T")
V = TypeVar("V", bound=ResponseModel)
ROOT: Final = "/api/v1"


def path(*parts: str, action: str = "") -> str:
    """A path below the API root; every part is quoted."""
    joined = "/".join(quote(part, safe="") for part in parts)
    return f"{ROOT}/{joined}{f':{action}' if action else ''}"


def query(**given: Any) -> dict[str, Any]:
    """Query parameters without empty ones; booleans in lower case."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in given.items()
        if value is not None and value != ""
    }


def get(where: str, asked: Mapping[str, Any] | None = None, *, extra_timeout_sec: float = 0.0) -> HttpRequest:
    """A GET request."""
    return HttpRequest("GET", where, asked or {}, is_repeatable=True, extra_timeout_sec=extra_timeout_sec)


def post(
    where: str, body: Any = None, *, asked: Mapping[str, Any] | None = None, extra_timeout_sec: float = 0.0
) -> HttpRequest:
    """A POST request that is not idempotent."""
    return HttpRequest("POST", where, asked or {}, body, extra_timeout_sec=extra_timeout_sec)


def post_idempotent(
    where: str, body: Any, key: str | None, *, asked: Mapping[str, Any] | None = None, extra_timeout_sec: float = 0.0
) -> HttpRequest:
    """A POST request with an idempotency key. Default: a new key, used by all retries."""
    headers = {"Idempotency-Key": key or new_id()}
    return HttpRequest(
        "POST", where, asked or {}, body, headers=headers, is_repeatable=True, extra_timeout_sec=extra_timeout_sec
    )


def fetch(kind: type[V], request: HttpRequest, retry: ClientRetryPolicy) -> Program[V]:
    """Send a request and decode its response."""
    return (yield from _fetch_as(request, retry, lambda given: decode(kind, given)))


def fetch_list(kind: type[V], request: HttpRequest, retry: ClientRetryPolicy) -> Program[tuple[V, ...]]:
    """Send a request and decode the items of its response."""
    return (yield from _fetch_as(request, retry, lambda given: decode_list(kind, given)))


def fetch_page(kind: type[V], request: HttpRequest, retry: ClientRetryPolicy) -> Program[Page[V]]:
    """Send a request and decode a page."""
    return (yield from _fetch_as(request, retry, lambda given: Page(decode_list(kind, given), given.get("next"))))


def send(request: HttpRequest, retry: ClientRetryPolicy) -> Program[None]:
    """Send a request and ignore the response body."""
    yield from send_with_retries(request, retry)


def fetch_bytes(request: HttpRequest, retry: ClientRetryPolicy) -> Program[bytes]:
    """Send a request and return the response body."""
    return (yield from send_with_retries(request, retry)).body


def _fetch_as(request: HttpRequest, retry: ClientRetryPolicy, convert: Callable[[Any], T]) -> Program[T]:
    answer = yield from send_with_retries(request, retry)
    return convert(json_body(answer))
