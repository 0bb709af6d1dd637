"""Operations: languages and problems."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.client.models import Language, Page, Problem, ProblemItem
from adjudge.client.requests import fetch, fetch_list, fetch_page, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program


def languages(retry: ClientRetryPolicy) -> Program[tuple[Language, ...]]:
    """All languages."""
    return (yield from fetch_list(Language, get(path("languages")), retry))


def problems(
    retry: ClientRetryPolicy,
    *,
    search: str = "",
    tags: Sequence[str] = (),
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[ProblemItem]]:
    """A page of problems."""
    wanted = query(q=search, tag=list(tags) or None, cursor=cursor, limit=limit)
    return (yield from fetch_page(ProblemItem, get(path("problems"), wanted), retry))


def problem(retry: ClientRetryPolicy, slug: str, *, language: str = "") -> Program[Problem]:
    """One problem by its slug or ID; ``language`` is the language of the statement."""
    return (yield from fetch(Problem, get(path("problems", slug), query(lang=language)), retry))
