"""Operations: packages of problems, sent to a server that imports them in the background."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from adjudge.client.asking import asked, get, path, query
from adjudge.client.errors import ApiError, Missing, Misunderstood, NotAllowed, NotLoggedIn, Unreachable, WaitedTooLong
from adjudge.client.reading import read
from adjudge.client.retrying import Patience
from adjudge.client.steps import Flow, Pause, Program, Request
from adjudge.client.streaming import Sent, events
from adjudge.client.values import Import, ImportStarted

_LOOK_AGAIN_SEC: Final = 1.0
_UPLOAD_SEC: Final = 300.0
"""How much longer than usual an answer to an upload may take."""


def problem_import(
    patience: Patience,
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
    request = Request(
        "POST",
        path("problems", action="import"),
        asking,
        content=package,
        headers={"Content-Type": "application/zip"},
        patience_sec=_UPLOAD_SEC,
    )
    return (yield from asked(ImportStarted, request, patience))


def problem_imported(patience: Patience, import_id: str) -> Program[Import]:
    """An import as it stands."""
    return (yield from asked(Import, get(path("imports", import_id)), patience))


def import_watch(patience: Patience, import_id: str) -> Flow[Import]:
    """How an import stands, then whenever that changed, until it ends."""
    yield from _told(patience, import_id)


def import_wait(patience: Patience, import_id: str, *, timeout_sec: float | None = None) -> Program[Import]:
    """Wait until an import has ended; ``WaitedTooLong`` when the time is over."""
    until_sec = math.inf if timeout_sec is None else patience.clock() + timeout_sec
    try:
        yield from _told(patience, import_id, until_sec)
    except (NotLoggedIn, NotAllowed, Missing):
        raise
    except (Unreachable, Misunderstood, ApiError):
        pass  # something in between does not let streams through
    while not (found := (yield from problem_imported(patience, import_id))).is_over:
        if patience.clock() >= until_sec:
            raise WaitedTooLong(f"Import {import_id} is still {found.state}.")
        yield Pause(_LOOK_AGAIN_SEC)
    return found


def _told(patience: Patience, import_id: str, until_sec: float = math.inf) -> Flow[Import]:
    last = yield from problem_imported(patience, import_id)

    def convert(sent: Sent) -> Import:
        nonlocal last
        if sent.name == "import":
            last = read(Import, sent.data)
        return last

    yield from events(patience, path("imports", import_id, "events"), convert, until_sec=until_sec)
