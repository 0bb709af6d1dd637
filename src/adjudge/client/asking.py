"""How operations are put together: paths that are safe, and requests whose answer is read as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote

from adjudge.client.reading import Value, document, read, read_all
from adjudge.client.retrying import Patience, perform
from adjudge.client.steps import Program, Request
from adjudge.client.values import Page
from adjudge.domain.ids import new_id

T = TypeVar("T")
V = TypeVar("V", bound=Value)
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


def get(where: str, asked: Mapping[str, Any] | None = None, *, patience_sec: float = 0.0) -> Request:
    """A request that changes nothing."""
    return Request("GET", where, asked or {}, is_repeatable=True, patience_sec=patience_sec)


def post(where: str, body: Any = None, *, asked: Mapping[str, Any] | None = None, patience_sec: float = 0.0) -> Request:
    """A request that does something each time it comes."""
    return Request("POST", where, asked or {}, body, patience_sec=patience_sec)


def post_once(
    where: str, body: Any, key: str | None, *, asked: Mapping[str, Any] | None = None, patience_sec: float = 0.0
) -> Request:
    """A request that does something the first time it comes; its key says which those are that belong together."""
    headers = {"Idempotency-Key": key or new_id()}
    return Request("POST", where, asked or {}, body, headers=headers, is_repeatable=True, patience_sec=patience_sec)


def asked(kind: type[V], request: Request, patience: Patience) -> Program[V]:
    """Send a request and read its answer."""
    return (yield from _answered(request, patience, lambda given: read(kind, given)))


def asked_all(kind: type[V], request: Request, patience: Patience) -> Program[tuple[V, ...]]:
    """Send a request and read the items of its answer."""
    return (yield from _answered(request, patience, lambda given: read_all(kind, given)))


def asked_page(kind: type[V], request: Request, patience: Patience) -> Program[Page[V]]:
    """Send a request and read a page."""
    return (yield from _answered(request, patience, lambda given: Page(read_all(kind, given), given.get("next"))))


def done(request: Request, patience: Patience) -> Program[None]:
    """Send a request whose answer is of no interest."""
    yield from perform(request, patience)


def asked_bytes(request: Request, patience: Patience) -> Program[bytes]:
    """Send a request whose answer is a file."""
    return (yield from perform(request, patience)).body


def _answered(request: Request, patience: Patience, convert: Callable[[Any], T]) -> Program[T]:
    answer = yield from perform(request, patience)
    return convert(document(answer))
