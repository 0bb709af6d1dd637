"""Operations: problem imports, which run in the background of the server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from adjudge.client.decode import decode
from adjudge.client.requests import fetch, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Flow, HttpRequest, Program
from adjudge.client.sse import ServerSentEvent, events, wait_until_finished
from adjudge.schema.problems import ImportAccepted, ImportRead

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
    watching = _watch_until(retry, import_id, until_sec)
    return (
        yield from wait_until_finished(retry, watching, lambda: import_status(retry, import_id), until_sec, "Import")
    )


def _watch_until(retry: ClientRetryPolicy, import_id: str, until_sec: float = math.inf) -> Flow[ImportRead]:
    last = yield from import_status(retry, import_id)

    def convert(sent: ServerSentEvent) -> ImportRead:
        nonlocal last
        if sent.name == "import":
            last = decode(ImportRead, sent.data)
        return last

    yield from events(retry, path("imports", import_id, "events"), convert, until_sec=until_sec)
