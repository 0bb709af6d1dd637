"""Operations: problem imports, which run in the background of the server."""

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
from adjudge.client.requests import fetch, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Delay, Flow, HttpRequest, Program
from adjudge.client.sse import ServerSentEvent, events
from adjudge.schema.problems import ImportAccepted, ImportRead

_POLL_SEC: Final = 1.0
_UPLOAD_SEC: Final = 300.0
"""Additional time for the response to an upload."""


def problem_import(
    retry: ClientRetryPolicy,
    package: bytes,
    *,
    slug: str | None = None,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    difficulty: float | None = None,
    verify: bool | None = None,
    publish: bool = False,
    file_name: str = "",
) -> Program[ImportAccepted]:
    """Import a package, a ZIP archive. With ``publish``, it is verified first."""
    parameters = query(
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
        parameters,
        content=package,
        headers={"Content-Type": "application/zip"},
        extra_timeout_sec=_UPLOAD_SEC,
    )
    return (yield from fetch(ImportAccepted, request, retry))


def import_status(retry: ClientRetryPolicy, import_id: str) -> Program[ImportRead]:
    """The state of an import."""
    return (yield from fetch(ImportRead, get(path("imports", import_id)), retry))


def import_watch(retry: ClientRetryPolicy, import_id: str) -> Flow[ImportRead]:
    """The state of an import, then all changes until it finishes."""
    yield from _watch_until(retry, import_id)


def import_wait(retry: ClientRetryPolicy, import_id: str, *, timeout_sec: float | None = None) -> Program[ImportRead]:
    """Wait until an import has finished; raises ``WaitTimeoutError`` after ``timeout_sec``."""
    until_sec = math.inf if timeout_sec is None else retry.clock() + timeout_sec
    try:
        yield from _watch_until(retry, import_id, until_sec)
    except (AuthenticationError, PermissionDeniedError, NotFoundError):
        raise
    except (UnreachableError, BadResponseError, ApiError):
        pass  # a proxy may block event streams; poll instead
    while not (found := (yield from import_status(retry, import_id))).is_finished:
        if retry.clock() >= until_sec:
            raise WaitTimeoutError(f"Import {import_id} is still {found.state}.")
        yield Delay(_POLL_SEC)
    return found


def _watch_until(retry: ClientRetryPolicy, import_id: str, until_sec: float = math.inf) -> Flow[ImportRead]:
    last = yield from import_status(retry, import_id)

    def convert(sent: ServerSentEvent) -> ImportRead:
        nonlocal last
        if sent.name == "import":
            last = decode(ImportRead, sent.data)
        return last

    yield from events(retry, path("imports", import_id, "events"), convert, until_sec=until_sec)
