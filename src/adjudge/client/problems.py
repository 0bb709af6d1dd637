"""Operations: languages and problems."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_list, fetch_page, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.problems import LanguageRead, ProblemRead, ProblemSummary


def languages(retry: ClientRetryPolicy) -> Program[tuple[LanguageRead, ...]]:
    """All languages."""
    return (yield from fetch_list(LanguageRead, get(path("languages")), retry))


def problems(
    retry: ClientRetryPolicy,
    *,
    search: str = "",
    tags: Sequence[str] = (),
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[ProblemSummary]]:
    """A page of problems."""
    wanted = query(q=search, tag=list(tags) or None, cursor=cursor, limit=limit)
    return (yield from fetch_page(ProblemSummary, get(path("problems"), wanted), retry))


def problem(retry: ClientRetryPolicy, slug: str, *, language: str = "") -> Program[ProblemRead]:
    """One problem by its slug or ID; ``language`` is the language of the statement."""
    return (yield from fetch(ProblemRead, get(path("problems", slug), query(lang=language)), retry))
