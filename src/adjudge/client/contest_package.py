"""Operations: export and import of contest packages."""

from __future__ import annotations

from typing import Final

from adjudge.client.requests import fetch, fetch_bytes, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.contest_package import ContestImportRead

_TRANSFER_SEC: Final = 900.0
"""Additional time for uploading, unpacking or downloading a package."""


def contest_export(retry: ClientRetryPolicy, name: str, *, submissions: bool = True) -> Program[bytes]:
    """A contest as a contest package, a ZIP archive."""
    parameters = query(submissions=None if submissions else False)
    request = get(path("contests", name, "package"), parameters, extra_timeout_sec=_TRANSFER_SEC)
    return (yield from fetch_bytes(request, retry))


def contest_import(
    retry: ClientRetryPolicy,
    package: bytes,
    *,
    preview: bool = False,
    slug: str | None = None,
    verify: bool = False,
    file_name: str = "",
) -> Program[ContestImportRead]:
    """Import a contest package, a ZIP archive, or preview it. Importing it twice changes nothing."""
    request = HttpRequest(
        "POST",
        path("contests", action="import"),
        query(preview=preview or None, slug=slug, verify=verify or None, file_name=file_name),
        content=package,
        headers={"Content-Type": "application/zip"},
        is_repeatable=True,
        extra_timeout_sec=_TRANSFER_SEC,
    )
    return (yield from fetch(ContestImportRead, request, retry))
