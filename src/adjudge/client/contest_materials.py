"""Operations: materials of a contest."""

from __future__ import annotations

from typing import Final

from adjudge.client.requests import fetch, fetch_bytes, fetch_list, get, path, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.contest_materials import MaterialRead

_TRANSFER_SEC: Final = 300.0
"""Additional time for uploading or downloading a file."""


def contest_materials(retry: ClientRetryPolicy, name: str) -> Program[tuple[MaterialRead, ...]]:
    """The materials of a contest that you may see."""
    return (yield from fetch_list(MaterialRead, get(path("contests", name, "materials")), retry))


def contest_material(retry: ClientRetryPolicy, name: str, material: str) -> Program[bytes]:
    """The content of a material."""
    request = get(path("contests", name, "materials", material), extra_timeout_sec=_TRANSFER_SEC)
    return (yield from fetch_bytes(request, retry))


def contest_save_material(
    retry: ClientRetryPolicy,
    name: str,
    material: str,
    content: bytes,
    *,
    title: str | None = None,
    visible: str | None = None,
) -> Program[MaterialRead]:
    """Upload a material, or replace it; ``visible`` is ``always``, ``start`` or ``thaw``."""
    request = HttpRequest(
        "PUT",
        path("contests", name, "materials", material),
        query(title=title, visible=visible),
        content=content,
        is_repeatable=True,
        extra_timeout_sec=_TRANSFER_SEC,
    )
    return (yield from fetch(MaterialRead, request, retry))


def contest_update_material(
    retry: ClientRetryPolicy, name: str, material: str, *, title: str | None = None, visible: str | None = None
) -> Program[MaterialRead]:
    """Change the title of a material, or when it is visible; None keeps a value."""
    body = {key: value for key, value in {"title": title, "visible": visible}.items() if value is not None}
    request = HttpRequest("PATCH", path("contests", name, "materials", material), {}, body, is_repeatable=True)
    return (yield from fetch(MaterialRead, request, retry))


def contest_delete_material(retry: ClientRetryPolicy, name: str, material: str) -> Program[None]:
    """Delete a material."""
    yield from send(HttpRequest("DELETE", path("contests", name, "materials", material)), retry)
