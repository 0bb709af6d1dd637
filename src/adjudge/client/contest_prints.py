"""Operations: the print queue of a contest."""

from __future__ import annotations

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_bytes, fetch_page, get, path, post, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.prints import PrintRead


def contest_prints(
    retry: ClientRetryPolicy, name: str, *, state: str = "all", limit: int = 100, cursor: str | None = None
) -> Program[Page[PrintRead]]:
    """A page of print jobs; ``state`` is ``pending``, ``printing``, ``done``, ``open`` or ``all``."""
    request = get(path("contests", name, "prints"), query(state=state, limit=limit, cursor=cursor))
    return (yield from fetch_page(PrintRead, request, retry))


def contest_print(retry: ClientRetryPolicy, name: str, content: str, *, file_name: str = "") -> Program[PrintRead]:
    """Send a text to the printer."""
    body = {"file_name": file_name, "content": content}
    return (yield from fetch(PrintRead, post(path("contests", name, "prints"), body), retry))


def contest_print_text(retry: ClientRetryPolicy, name: str, number: int) -> Program[bytes]:
    """The text of a print job."""
    return (yield from fetch_bytes(get(path("contests", name, "prints", str(number), "text")), retry))


def contest_print_pages(retry: ClientRetryPolicy, name: str, number: int) -> Program[bytes]:
    """A print job in pages with titles, divided by form feeds."""
    return (yield from fetch_bytes(get(path("contests", name, "prints", str(number), "pages")), retry))


def contest_claim_print(retry: ClientRetryPolicy, name: str, number: int) -> Program[PrintRead]:
    """Claim a pending print job; ``ConflictError`` if somebody else has it."""
    return (yield from fetch(PrintRead, post(path("contests", name, "prints", str(number), action="claim")), retry))


def contest_finish_print(retry: ClientRetryPolicy, name: str, number: int) -> Program[PrintRead]:
    """Mark a print job as printed; repeating it changes nothing."""
    return (yield from fetch(PrintRead, _repeatable(name, number, "finish"), retry))


def contest_requeue_print(retry: ClientRetryPolicy, name: str, number: int) -> Program[PrintRead]:
    """Put a print job back into the queue; repeating it changes nothing."""
    return (yield from fetch(PrintRead, _repeatable(name, number, "requeue"), retry))


def _repeatable(name: str, number: int, action: str) -> HttpRequest:
    where = path("contests", name, "prints", str(number), action=action)
    return HttpRequest("POST", where, is_repeatable=True)
