"""Pages: the problems of a contest, for its organisers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from adjudge.api.schema.base import decode_json
from adjudge.domain.contest import MICRO_POINTS, ContestRole, to_micro_points
from adjudge.domain.errors import InvalidInput, VersionConflict
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import search_words
from adjudge.schema.problems import ProblemPage, ProblemSummary
from adjudge.services.contest_problem_specs import ContestProblemSpec
from adjudge.services.contests import ContestService
from adjudge.services.problems import ProblemService, filter_own
from adjudge.services.viewer import Viewer
from adjudge.store.contests.models import ContestProblemRow
from adjudge.store.problems.models import ProblemFilter
from adjudge.web import forms
from adjudge.web.contest_durations import format_us, parse_us
from adjudge.web.contest_form import without_name
from adjudge.web.contest_header import ContestPageRenderer
from adjudge.web.render import page_router, redirect
from adjudge.web.routes.contest_settings import TAB, Member, sent_version

_TEXTS: Final = (
    "problem",
    "order",
    "label",
    "revision",
    "alias",
    "color",
    "rgb",
    "points",
    "opens",
    "closes",
    "languages",
)
_FLAGS: Final = ("accepts", "paused", "remove")
_MAX_ROWS: Final = 100
_FOUND: Final = 20
_MAX_POINTS: Final = 1e9
_FORM_NAMES: Final = {
    "closes_after_sec": "closes",
    "allowed_languages": "languages",
}
"""Names of fields in the service and in the form, where they differ."""

Row = dict[str, Any]


def router(page: ContestPageRenderer, contests: ContestService, problems: ProblemService) -> APIRouter:
    routes = page_router(page.pages)

    async def render(request: Request, viewer: Viewer, slug: str, **shown: Any) -> Response:
        view = await contests.access.find_as(viewer, slug, ContestRole.ORGANISER)
        known = await contests.list_problems(view)
        given = {
            "q": "",
            "add": "",
            "error": "",
            "found": [],
            "errors": {},
            "conflict": False,
            "version": view.contest.version,
            "rows": [_row(item) for item in known],
            "published": {item.slug for item in known if item.is_published},
            **shown,
        }
        return await page.render(request, view, "contest_problem_settings.html", tab=TAB, **given)

    @routes.get("/contests/{slug}/settings/problems")
    async def shown(
        request: Request, viewer: Member, slug: str, q: Annotated[str, Query(max_length=200)] = ""
    ) -> Response:
        return await render(request, viewer, slug, q=q, found=await _search(problems, viewer, q) if q.strip() else [])

    @routes.post("/contests/{slug}/settings/problems")
    async def save(request: Request, viewer: Member, slug: str) -> Response:
        rows, version = [row async for row in _sent_rows(request)], await sent_version(request)
        add = (await forms.text(request, "add", limit=200)).strip()
        errors: dict[str, str] = {}
        ordered = _ordered(rows, errors)
        specs = [_spec(index, row, errors) for index, row in ordered]
        if errors:
            return await render(request, viewer, slug, status=400, rows=rows, errors=errors, add=add, version=version)
        try:
            added = [ContestProblemSpec(add)] if add else []
            await contests.save_problems(viewer, slug, [*specs, *added], version=version)
        except VersionConflict:
            return await render(request, viewer, slug, status=409, rows=rows, add=add, conflict=True)
        except InvalidInput as error:
            named = _form_field(error, [index for index, _ in ordered])
            wrong = {"error": without_name(error)} if named is None else {"errors": {named: without_name(error)}}
            return await render(request, viewer, slug, status=400, rows=rows, add=add, version=version, **wrong)
        return redirect(f"/contests/{slug}/settings/problems", done="saved")

    return routes


async def _search(problems: ProblemService, viewer: Viewer, q: str) -> list[ProblemSummary]:
    """Own problems, drafts included, then published ones."""
    wanted = ProblemFilter(words=search_words(q))
    filters = [wanted]
    if viewer.can(Permission.PROBLEM_WRITE):
        filters.insert(0, filter_own(wanted, viewer))
    found: dict[str, ProblemSummary] = {}
    for each in filters:
        page = await problems.list_problems(viewer, each, after=None, limit=_FOUND)
        found |= {item.id: item for item in decode_json(ProblemPage, page.body).items}
    return list(found.values())[:_FOUND]


def _row(row: ContestProblemRow) -> Row:
    problem = row.problem
    return {
        "problem": row.slug,
        "title": row.title,
        "order": str(problem.ordinal + 1),
        "label": problem.label,
        "revision": "",
        "alias": problem.alias or "",
        "color": problem.color or "",
        "rgb": problem.rgb or "",
        "points": f"{problem.points_micro / MICRO_POINTS:g}",
        "opens": format_us(problem.opens_ct_us),
        "closes": format_us(problem.closes_ct_us),
        "languages": ", ".join(problem.allowed_languages or ()),
        "accepts": problem.accepts,
        "paused": problem.judging_paused,
        "remove": False,
    }


async def _sent_rows(request: Request) -> Any:
    for index in range(_MAX_ROWS):
        if not await forms.text(request, f"problem-{index}", limit=200):
            return
        row: Row = {name: (await forms.text(request, f"{name}-{index}", limit=2_000)).strip() for name in _TEXTS}
        row |= {name: await forms.text(request, f"{name}-{index}") != "" for name in _FLAGS}
        row["title"] = row["alias"] or row["problem"]
        yield row


def _ordered(rows: list[Row], errors: dict[str, str]) -> list[tuple[int, Row]]:
    """The rows that stay, with their index in the form, in the wanted order."""
    kept: list[tuple[float, int, Row]] = []
    for index, row in enumerate(rows):
        if row["remove"]:
            continue
        position = _number(row["order"] or str(index + 1), f"order-{index}", errors)
        kept.append((position, index, row))
    return [(index, row) for _, index, row in sorted(kept, key=lambda item: item[:2])]


def _number(text: str, name: str, errors: dict[str, str]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MAX_POINTS:
        errors[name] = "Expected a number that is not negative."
        return 0.0
    return value


def _spec(index: int, row: Mapping[str, Any], errors: dict[str, str]) -> ContestProblemSpec:
    languages = tuple(item.strip() for item in row["languages"].split(",") if item.strip())
    revision = row["revision"]
    if revision and not (revision.isdecimal() and len(revision) <= 10 and 0 < int(revision) < 1 << 31):
        errors[f"revision-{index}"] = "Expected the number of a revision."
        revision = ""
    return ContestProblemSpec(
        problem=row["problem"],
        label=row["label"] or None,
        revision=int(revision) if revision else None,
        alias=row["alias"] or None,
        rgb=row["rgb"] or None,
        color=row["color"] or None,
        points_micro=to_micro_points(_number(row["points"], f"points-{index}", errors)),
        opens_ct_us=_duration(row["opens"], f"opens-{index}", errors),
        closes_ct_us=_duration(row["closes"], f"closes-{index}", errors),
        accepts=row["accepts"],
        judging_paused=row["paused"],
        allowed_languages=languages or None,
    )


def _duration(text: str, name: str, errors: dict[str, str]) -> int | None:
    try:
        return parse_us(text, name)
    except InvalidInput as error:
        errors[name] = without_name(error)
        return None


def _form_field(error: InvalidInput, indexes: list[int]) -> str | None:
    """The field of the form that an error of the service names; None for one outside the rows."""
    place, _, name = str(error.fields.get("field", "")).partition(".")
    number = place.removeprefix("problems[").removesuffix("]")
    if not number.isdecimal() or int(number) >= len(indexes):
        return None
    return f"{_FORM_NAMES.get(name, name)}-{indexes[int(number)]}"
