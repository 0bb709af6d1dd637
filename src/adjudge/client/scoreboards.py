"""Operations: scoreboards of contests, their exports, awards, the unfreezing ceremony and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.client.requests import fetch, fetch_bytes, fetch_list, get, path, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.scoreboard import AwardList, AwardRead, ContestStatisticsRead, ResolverRead, ScoreboardRead


def scoreboard(
    retry: ClientRetryPolicy,
    contest: str,
    *,
    view: str = "public",
    group: str = "",
    organization: str = "",
    offset: int = 0,
    limit: int = 100,
) -> Program[ScoreboardRead]:
    """A window of rows; ``view="jury"`` needs a role in the contest."""
    wanted = query(view=view, group=group, organization=organization, offset=offset, limit=limit)
    return (yield from fetch(ScoreboardRead, get(path("contests", contest, "scoreboard"), wanted), retry))


def scoreboard_export(retry: ClientRetryPolicy, contest: str, name: str, *, view: str = "public") -> Program[bytes]:
    """A file: ``scoreboard.json``, ``awards.json``, ``results.tsv``, ``scoreboard.csv`` or ``scoreboard.html``."""
    return (yield from fetch_bytes(get(path("contests", contest, name), query(view=view)), retry))


def awards(retry: ClientRetryPolicy, contest: str, *, view: str = "public") -> Program[tuple[AwardRead, ...]]:
    """The awards of a contest."""
    return (yield from fetch_list(AwardRead, get(path("contests", contest, "awards"), query(view=view)), retry))


def set_awards(retry: ClientRetryPolicy, contest: str, items: Sequence[Mapping[str, Any]]) -> Program[AwardList]:
    """Replace the edited awards: ``id``, ``citation`` and ``participant_ids`` of each."""
    body = {"items": [dict(item) for item in items]}
    return (yield from fetch(AwardList, HttpRequest("PUT", path("contests", contest, "awards"), {}, body), retry))


def resolver(retry: ClientRetryPolicy, contest: str) -> Program[ResolverRead]:
    """The steps of the unfreezing ceremony."""
    return (yield from fetch(ResolverRead, get(path("contests", contest, "resolver")), retry))


def contest_statistics(retry: ClientRetryPolicy, contest: str) -> Program[ContestStatisticsRead]:
    """The statistics of a contest."""
    return (yield from fetch(ContestStatisticsRead, get(path("contests", contest, "statistics")), retry))
