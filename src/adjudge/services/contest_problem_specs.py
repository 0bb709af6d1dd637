"""The problems of a contest as organisers give them: their checks, and the revisions that are pinned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.judge.languages import Languages
from adjudge.packages.problem_json import problem_from_json
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import queries
from adjudge.store.contests.models import ContestProblem, ContestProblemRow
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import ProblemRow

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,35}")
_RGB: Final = re.compile(r"#[0-9a-fA-F]{6}")
MAX_PROBLEMS: Final = 100


@dataclass(frozen=True, slots=True)
class ContestProblemSpec:
    """A problem of a contest as an organiser gives it; ``problem`` is its slug or id."""

    problem: str
    label: str | None = None
    """By default a letter by position."""
    revision: int | None = None
    """By default the pinned revision; for a problem that is new in the contest the published one, else the latest."""
    alias: str | None = None
    rgb: str | None = None
    color: str | None = None
    points_micro: int = 100_000_000
    opens_ct_us: int | None = None
    closes_ct_us: int | None = None
    accepts: bool = True
    judging_paused: bool | None = None
    """None: unchanged."""
    allowed_languages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SavedProblems:
    """The problems after a change, and the new version of the contest."""

    problems: list[ContestProblemRow]
    version: int

    @property
    def warnings(self) -> list[str]:
        """What the organiser should know."""
        return [
            f"{row.slug} is published: everybody can read it before the contest."
            for row in self.problems
            if row.is_published
        ]


async def resolve_specs(
    tx: Tx, viewer: Viewer, contest_id: str, specs: Sequence[ContestProblemSpec], languages: Languages
) -> list[ContestProblem]:
    """Check the problems and find their revisions; every error names its field."""
    known = await queries.problems(tx, contest_id)
    pinned = {row.problem.problem_id: row.problem.revision_id for row in known}
    paused = {row.problem.problem_id for row in known if row.problem.judging_paused}
    problems = []
    for ordinal, spec in enumerate(_labelled(specs)):
        field = f"problems[{ordinal}]"
        _check_spec(spec, field, languages)
        problem, revision_id = await _find_revision(tx, viewer, spec, field, pinned)
        is_paused = problem.id in paused if spec.judging_paused is None else spec.judging_paused
        given = _contest_problem(contest_id, problem.id, revision_id, ordinal, spec)
        problems.append(replace(given, judging_paused=is_paused))
    _check_unique(problems)
    await _check_objective(tx, problems)
    return problems


async def _check_objective(tx: Tx, problems: Sequence[ContestProblem]) -> None:
    """Refuse problems whose lowest score is the best: every format ranks higher scores first."""
    revisions = await problem_queries.find_revisions(tx, [item.revision_id for item in problems])
    for index, item in enumerate(problems):
        if problem_from_json(revisions[item.revision_id].definition).is_minimised:
            field = f"problems[{index}].problem"
            message = "a lower score is better in this problem, which no scoring format supports; choose another one."
            raise InvalidInput(f"{field}: {message}", field=field)


def check_languages(languages: Languages, given: tuple[str, ...] | None, field: str) -> None:
    """Raise InvalidInput if a language is unknown."""
    for language in given or ():
        try:
            languages.get(language)
        except (NotFound, InvalidInput):
            raise InvalidInput(
                f"{field}: {language[:64]!r} is not a language of this judge; see the list of languages.", field=field
            ) from None


def _check_spec(spec: ContestProblemSpec, field: str, languages: Languages) -> None:
    check_languages(languages, spec.allowed_languages, f"{field}.allowed_languages")
    if spec.rgb is not None and not _RGB.fullmatch(spec.rgb):
        raise InvalidInput(f"{field}.rgb: expected #rrggbb.", field=f"{field}.rgb")
    if not _LABEL.fullmatch(spec.label or ""):
        raise InvalidInput(f"{field}.label: must match [A-Za-z0-9][A-Za-z0-9_-]{{0,35}}.", field=f"{field}.label")
    if spec.points_micro < 0:
        raise InvalidInput(f"{field}.points: must not be negative.", field=f"{field}.points")
    opens, closes = spec.opens_ct_us, spec.closes_ct_us
    if opens is not None and closes is not None and opens >= closes:
        field = f"{field}.closes_after_sec"
        raise InvalidInput(f"{field}: must be after the opening of the problem.", field=field)


def _labelled(specs: Sequence[ContestProblemSpec]) -> list[ContestProblemSpec]:
    """The problems with labels by position where none is given: A to Z, then P27, P28 and so on."""
    if len(specs) > MAX_PROBLEMS:
        raise InvalidInput(f"problems: at most {MAX_PROBLEMS}.", field="problems")
    letters = [chr(ord("A") + index) if index < 26 else f"P{index + 1}" for index in range(len(specs))]
    return [replace(spec, label=spec.label or letter) for spec, letter in zip(specs, letters, strict=True)]


async def _find_revision(
    tx: Tx, viewer: Viewer, spec: ContestProblemSpec, field: str, pinned: Mapping[str, str]
) -> tuple[ProblemRow, str]:
    """The problem and the revision to be pinned. A draft of somebody else is unknown, unless the contest has it."""
    problem = await problem_queries.find(tx, spec.problem)
    if problem is None or not (
        problem.published_revision_id is not None or problem.id in pinned or _reads_drafts(viewer, problem)
    ):
        raise InvalidInput(f"{field}.problem: there is no problem {spec.problem[:64]!r}.", field=f"{field}.problem")
    if spec.revision is not None:
        revision_id = await _numbered_revision(tx, problem, spec.revision, field)
        if revision_id not in (problem.published_revision_id, pinned.get(problem.id)) and not _reads_drafts(
            viewer, problem
        ):
            raise _no_revision(problem, spec.revision, field)
        return problem, revision_id
    if problem.id in pinned:
        return problem, pinned[problem.id]
    if problem.published_revision_id is not None:
        return problem, problem.published_revision_id
    latest = await problem_queries.find_latest_revision(tx, problem.id)
    if latest is None:
        raise InvalidInput(f"{field}.problem: {problem.slug!r} has no revision; import one.", field=f"{field}.problem")
    return problem, latest.id


async def _numbered_revision(tx: Tx, problem: ProblemRow, number: int, field: str) -> str:
    try:
        return (await problem_queries.find_revision_by_number(tx, problem.id, number)).id
    except NotFound:
        raise _no_revision(problem, number, field) from None


def _no_revision(problem: ProblemRow, number: int, field: str) -> InvalidInput:
    """The same error for a missing revision and for one that the viewer may not read."""
    message = f"{field}.revision: {problem.slug!r} has no revision {number} that you may use."
    return InvalidInput(message, field=f"{field}.revision")


def _reads_drafts(viewer: Viewer, problem: ProblemRow) -> bool:
    return problem.owner_id == viewer.user_id or viewer.can(Permission.PROBLEM_READ_DRAFT)


def _contest_problem(
    contest_id: str, problem_id: str, revision_id: str, ordinal: int, spec: ContestProblemSpec
) -> ContestProblem:
    return ContestProblem(
        contest_id=contest_id,
        problem_id=problem_id,
        revision_id=revision_id,
        label=spec.label or "",
        ordinal=ordinal,
        rgb=spec.rgb,
        color=spec.color,
        alias=spec.alias or None,
        points_micro=spec.points_micro,
        opens_ct_us=spec.opens_ct_us,
        closes_ct_us=spec.closes_ct_us,
        accepts=spec.accepts,
        allowed_languages=spec.allowed_languages,
    )


def _check_unique(problems: Sequence[ContestProblem]) -> None:
    """Refuse a problem, label or colour that is used twice."""
    used: dict[tuple[str, str], int] = {}
    for index, problem in enumerate(problems):
        given = {"problem": problem.problem_id, "label": problem.label, "rgb": problem.rgb, "color": problem.color}
        for name, value in given.items():
            before = index if not value else used.setdefault((name, value.casefold()), index)
            if before != index:
                field = f"problems[{index}].{name}"
                text = _TWICE[name].format(value=value, label=problems[before].label)
                raise InvalidInput(f"{field}: {text}", field=field)


_TWICE: Final = {
    "problem": "this problem is already in the contest, as {label}; remove one of them.",
    "label": "{value!r} is used twice; give each problem its own label.",
    "rgb": "{value!r} is also the colour of problem {label}; choose another one.",
    "color": "{value!r} is also the colour of problem {label}; choose another one.",
}
