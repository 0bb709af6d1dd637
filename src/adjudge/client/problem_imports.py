"""Operations: packages of problems, sent to a server that imports them in the background."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from adjudge.client.decode import decode
from adjudge.client.errors import (
    ApiError,
    AuthenticationError,
    BadResponseError,
    NotFoundError,
    PermissionDeniedError,
    UnreachableError,
    WaitTimeoutError,
)
from adjudge.client.models import Import, ImportStarted
from adjudge.client.requests import fetch, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Delay, Flow, HttpRequest, Program
from adjudge.client.sse import ServerSentEvent, events

_LOOK_AGAIN_SEC: Final = 1.0
_UPLOAD_SEC: Final = 300.0
"""How much longer than usual an answer to an upload may take."""


def problem_import(
    patience: ClientRetryPolicy,
    package: bytes,
    *,
    slug: str | None = None,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    difficulty: float | None = None,
    verify: bool | None = None,
    publish: bool = False,
    file_name: str = "",
) -> Program[ImportStarted]:
    """Have a package imported, which is a ZIP; what is to be published is verified first."""
    asking = query(
        slug=slug,
        title=title,
        tag=list(tags) if tags is not None else None,
        difficulty=difficulty,
        verify=verify,
        publish=publish or None,
        file_name=file_name,
    )
    request = HttpRequest(
        "POST",
        path("problems", action="import"),
        asking,
        content=package,
        headers={"Content-Type": "application/zip"},
        patience_sec=_UPLOAD_SEC,
    )
    return (yield from fetch(ImportStarted, request, patience))


def import_status(patience: ClientRetryPolicy, import_id: str) -> Program[Import]:
    """An import as it stands."""
    return (yield from fetch(Import, get(path("imports", import_id)), patience))


def import_watch(patience: ClientRetryPolicy, import_id: str) -> Flow[Import]:
    """How an import stands, then whenever that changed, until it ends."""
    yield from _watch_until(patience, import_id)


def import_wait(patience: ClientRetryPolicy, import_id: str, *, timeout_sec: float | None = None) -> Program[Import]:
    """Wait until an import has ended; ``WaitedTooLong`` when the time is over."""
    until_sec = math.inf if timeout_sec is None else patience.clock() + timeout_sec
    try:
        yield from _watch_until(patience, import_id, until_sec)
    except (AuthenticationError, PermissionDeniedError, NotFoundError):
        raise
    except (UnreachableError, BadResponseError, ApiError):
        pass  # something in between does not let streams through
    while not (found := (yield from import_status(patience, import_id))).is_finished:
        if patience.clock() >= until_sec:
            raise WaitTimeoutError(f"Import {import_id} is still {found.state}.")
        yield Delay(_LOOK_AGAIN_SEC)
    return found


def _watch_until(patience: ClientRetryPolicy, import_id: str, until_sec: float = math.inf) -> Flow[Import]:
    last = yield from import_status(patience, import_id)

    def convert(sent: ServerSentEvent) -> Import:
        nonlocal last
        if sent.name == "import":
            last = decode(Import, sent.data)
        return last

    yield from events(patience, path("imports", import_id, "events"), convert, until_sec=until_sec)
