"""How operations are put together: paths that are safe, and requests whose answer is read as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote

from adjudge.client.decode import ResponseModel, decode, decode_list, json_body
from adjudge.client.models import Page
from adjudge.client.retry import ClientRetryPolicy, send_with_retries
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.domain.ids import new_id

T = TypeVar("T")
V = TypeVar("V", bound=ResponseModel)
ROOT: Final = "/api/v1"


def path(*parts: str, action: str = "") -> str:
    """An address below the API's root; what the caller names is quoted, so that it stays one part."""
    joined = "/".join(quote(part, safe="") for part in parts)
    return f"{ROOT}/{joined}{f':{action}' if action else ''}"


def query(**given: Any) -> dict[str, Any]:
    """What was given of a query; booleans as the API spells them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in given.items()
        if value is not None and value != ""
    }


def get(where: str, asked: Mapping[str, Any] | None = None, *, patience_sec: float = 0.0) -> HttpRequest:
    """A request that changes nothing."""
    return HttpRequest("GET", where, asked or {}, is_repeatable=True, patience_sec=patience_sec)


def post(
    where: str, body: Any = None, *, asked: Mapping[str, Any] | None = None, patience_sec: float = 0.0
) -> HttpRequest:
    """A request that does something each time it comes."""
    return HttpRequest("POST", where, asked or {}, body, patience_sec=patience_sec)


def post_idempotent(
    where: str, body: Any, key: str | None, *, asked: Mapping[str, Any] | None = None, patience_sec: float = 0.0
) -> HttpRequest:
    """A request that does something the first time it comes; its key says which those are that belong together."""
    headers = {"Idempotency-Key": key or new_id()}
    return HttpRequest("POST", where, asked or {}, body, headers=headers, is_repeatable=True, patience_sec=patience_sec)


def fetch(kind: type[V], request: HttpRequest, patience: ClientRetryPolicy) -> Program[V]:
    """Send a request and read its answer."""
    return (yield from _fetch_as(request, patience, lambda given: decode(kind, given)))


def fetch_list(kind: type[V], request: HttpRequest, patience: ClientRetryPolicy) -> Program[tuple[V, ...]]:
    """Send a request and read the items of its answer."""
    return (yield from _fetch_as(request, patience, lambda given: decode_list(kind, given)))


def fetch_page(kind: type[V], request: HttpRequest, patience: ClientRetryPolicy) -> Program[Page[V]]:
    """Send a request and read a page."""
    return (yield from _fetch_as(request, patience, lambda given: Page(decode_list(kind, given), given.get("next"))))


def send(request: HttpRequest, patience: ClientRetryPolicy) -> Program[None]:
    """Send a request whose answer is of no interest."""
    yield from send_with_retries(request, patience)


def fetch_bytes(request: HttpRequest, patience: ClientRetryPolicy) -> Program[bytes]:
    """Send a request whose answer is a file."""
    return (yield from send_with_retries(request, patience)).body


def _fetch_as(request: HttpRequest, patience: ClientRetryPolicy, convert: Callable[[Any], T]) -> Program[T]:
    answer = yield from send_with_retries(request, patience)
    return convert(json_body(answer))
