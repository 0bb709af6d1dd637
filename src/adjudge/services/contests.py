"""Contests: create, configure and clone them; their problems and roles."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests import lifecycle
from adjudge.contests.awards import parse_award_rules
from adjudge.contests.clock import Timeline, check_timeline
from adjudge.contests.formats import get_format
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, is_id, new_id
from adjudge.domain.permissions import Permission
from adjudge.judge.languages import Languages
from adjudge.services.contest_access import ContestAccess, ContestView, find_view, make_views
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import commands, queries
from adjudge.store.contests.models import (
    ContestProblem,
    ContestProblemRow,
    ContestRoleRow,
    ContestSettings,
)
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import ProblemRow

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,34}[a-z0-9_-]|[a-z0-9]")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,35}")
_RGB: Final = re.compile(r"#[0-9a-fA-F]{6}")
_MAX_PROBLEMS: Final = 100
_MAX_TITLE: Final = 200
_READ_AHEAD: Final = 500
"""Contests that are read at once to fill a page, if contests of it are hidden."""
_RESERVED_SLUGS: Final = frozenset({"new"})
_UNSUPPORTED: Final = (
    "contest_only",
    "printing_enabled",
    "materials_public",
)
"""Settings whose features do not exist yet; they are refused instead of having no effect."""


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
    judging_paused: bool = False
    allowed_languages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SavedProblems:
    """The problems after a change, and what the organiser should know."""

    problems: list[ContestProblemRow]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ContestService:
    """Operations on contests."""

    database: Database
    access: ContestAccess
    languages: Languages
    new_id: IdFactory = new_id

    async def list_contests(self, viewer: Viewer, *, before: str | None, limit: int) -> tuple[list[ContestView], str]:
        """The visible contests of one page, newest first, and the id where the next page begins; empty at the end."""

        async def look(tx: Tx) -> tuple[list[ContestView], str]:
            found, place, size = list[ContestView](), before or "~", limit + 1
            while True:  # hidden contests must not show by a shorter page or by their id in the cursor
                rows = await queries.page(tx, before=place, limit=size)
                found += await make_views(tx, viewer, rows)
                if len(found) > limit or len(rows) < size:
                    return found[:limit], found[limit - 1].contest.id if len(found) > limit else ""
                place, size = rows[-1].id, _READ_AHEAD

        return await self.database.read(look)

    async def create(self, viewer: Viewer, slug: str, settings: ContestSettings) -> ContestView:
        """Create a contest as a draft; the viewer is its organiser."""
        contest_id = self.new_id()
        checked = self._checked(settings)

        async def operation(tx: Tx) -> ContestView:
            await commands.insert(tx, contest_id, parse_slug(slug), checked, created_by=viewer.id)
            organiser = [(viewer.id, ContestRole.ORGANISER)]
            await commands.grant_roles(tx, contest_id, organiser, actor=viewer.id, granted_by=viewer.id)
            return await find_view(tx, viewer, contest_id)

        return await self.database.transact(operation)

    async def update(
        self,
        viewer: Viewer,
        name: str,
        change: Callable[[ContestSettings], ContestSettings],
        *,
        slug: str | None = None,
        version: int | None = None,
    ) -> ContestView:
        """Change settings; with ``version``, only if nobody changed the contest since it was read."""

        async def operation(tx: Tx, view: ContestView) -> None:
            settings = self._checked(change(view.contest.settings))
            contest = view.contest
            await lifecycle.update(
                tx,
                contest.id,
                settings,
                version=contest.version if version is None else version,
                slug=contest.slug if slug is None else parse_slug(slug),
                actor=viewer.id,
                reason="",
            )

        return await change_as_organiser(self.database, viewer, name, operation)

    async def clone(self, viewer: Viewer, name: str, *, slug: str, title: str) -> ContestView:
        """Copy the settings, problems and roles of a contest into a new draft without times and participants."""
        contest_id = self.new_id()

        async def operation(tx: Tx) -> ContestView:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER)
            settings = replace(
                view.contest.settings,
                title=title,
                starts_at=None,
                countdown_pause_us=None,
                contest_only=False,
                registration_opens_at=None,
                registration_closes_at=None,
            )
            await commands.insert(tx, contest_id, parse_slug(slug), self._checked(settings), created_by=viewer.id)
            problems = await queries.problems(tx, view.contest.id)
            copies = [replace(row.problem, contest_id=contest_id) for row in problems]
            await lifecycle.set_problems(tx, contest_id, copies, actor=viewer.id, reason="")
            roles = [(row.user_id, row.role) for row in await queries.roles(tx, view.contest.id)]
            roles.append((viewer.id, ContestRole.ORGANISER))
            await commands.grant_roles(tx, contest_id, roles, actor=viewer.id, granted_by=viewer.id)
            return await find_view(tx, viewer, contest_id)

        return await self.database.transact(operation)

    # Problems and roles.

    async def list_problems(self, view: ContestView) -> list[ContestProblemRow]:
        """The problems of a contest that the viewer may see."""
        if not view.sees_problems:
            return []
        rows = await self.database.read(lambda tx: queries.problems(tx, view.contest.id))
        return [row for row in rows if view.sees_problem(row.problem)]

    async def save_problems(self, viewer: Viewer, name: str, specs: Sequence[ContestProblemSpec]) -> SavedProblems:
        """Replace the problems of a contest."""

        async def operation(tx: Tx) -> SavedProblems:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER)
            contest_id, warnings, problems = view.contest.id, list[str](), list[ContestProblem]()
            pinned = {row.problem.problem_id: row.problem.revision_id for row in await queries.problems(tx, contest_id)}
            for ordinal, spec in enumerate(_labelled(specs)):
                field = f"problems[{ordinal}]"
                self._check_spec(spec, field)
                problem, revision_id = await _find_revision(tx, viewer, spec, field, pinned)
                problems.append(_contest_problem(contest_id, problem.id, revision_id, ordinal, spec))
                if problem.published_revision_id is not None:
                    warnings.append(f"{problem.slug} is published: everybody can read it before the contest.")
            _check_unique(problems)
            await lifecycle.set_problems(tx, contest_id, problems, actor=viewer.id, reason="")
            return SavedProblems(await queries.problems(tx, contest_id), warnings)

        return await self.database.transact(operation)

    def _check_spec(self, spec: ContestProblemSpec, field: str) -> None:
        self._check_languages(spec.allowed_languages, f"{field}.allowed_languages")
        if spec.rgb is not None and not _RGB.fullmatch(spec.rgb):
            raise InvalidInput(f"{field}.rgb: expected #rrggbb.", field=f"{field}.rgb")
        if not _LABEL.fullmatch(spec.label or ""):
            raise InvalidInput(f"{field}.label: must match [A-Za-z0-9][A-Za-z0-9_-]{{0,35}}.", field=f"{field}.label")
        if spec.judging_paused:
            raise InvalidInput(
                f"{field}.judging_paused: not supported yet; set accepts to false.", field=f"{field}.judging_paused"
            )
        if spec.points_micro < 0:
            raise InvalidInput(f"{field}.points: must not be negative.", field=f"{field}.points")
        opens, closes = spec.opens_ct_us, spec.closes_ct_us
        if opens is not None and closes is not None and opens >= closes:
            raise InvalidInput(f"{field}.closes_ct_us: must be after opens_ct_us.", field=f"{field}.closes_ct_us")

    async def list_roles(self, viewer: Viewer, name: str) -> list[ContestRoleRow]:
        """The roles in a contest, for its organisers."""
        view = await self.access.find_as(viewer, name, ContestRole.ORGANISER)
        return await self.database.read(lambda tx: queries.roles(tx, view.contest.id))

    async def grant_role(self, viewer: Viewer, name: str, user: str, role: ContestRole) -> None:
        """Give a user, named by name or id, a role in a contest."""

        async def operation(tx: Tx, view: ContestView) -> None:
            user_id = await _find_user(tx, user)
            await commands.grant_roles(tx, view.contest.id, [(user_id, role)], actor=viewer.id, granted_by=viewer.id)

        await change_as_organiser(self.database, viewer, name, operation)

    async def revoke_role(self, viewer: Viewer, name: str, user: str, role: ContestRole) -> None:
        """Take a role from a user; the last organiser keeps it."""

        async def operation(tx: Tx, view: ContestView) -> None:
            user_id = await _find_user(tx, user)
            organisers = {row.user_id for row in await queries.roles(tx, view.contest.id) if row.role is role}
            if role is ContestRole.ORGANISER and organisers == {user_id}:
                raise InvalidInput("role: the last organiser of a contest cannot be removed.", field="role")
            await commands.revoke_role(tx, view.contest.id, user_id, role, actor=viewer.id)

        await change_as_organiser(self.database, viewer, name, operation)

    def _checked(self, settings: ContestSettings) -> ContestSettings:
        """Check the values of all settings; each error names its field."""
        title = settings.title.strip()
        if not 0 < len(title) <= _MAX_TITLE:
            raise InvalidInput(f"title: expected 1 to {_MAX_TITLE} characters.", field="title")
        check_timeline(
            Timeline(
                settings.starts_at,
                settings.duration_us,
                settings.countdown_pause_us,
                settings.freeze_ct_us,
                window_us=settings.window_us,
            )
        )
        get_format(settings.format).parse_config(settings.format_cfg)
        parse_award_rules(settings.awards_cfg, "awards_cfg")
        self._check_languages(settings.allowed_languages, "allowed_languages")
        for index, text in enumerate(settings.address_ranges or ()):
            check_network(text, f"address_ranges[{index}]")
        for field in _UNSUPPORTED:
            if getattr(settings, field):
                raise InvalidInput(f"{field}: not supported yet; leave it off.", field=field)
        for field in ("max_team_members", "submissions_per_minute", "submissions_per_problem"):
            value = getattr(settings, field)
            if value is not None and value < 1:
                raise InvalidInput(f"{field}: must be at least 1.", field=field)
        if not settings.allows_individuals and not settings.allows_teams:
            raise InvalidInput("allows_teams: allow individuals, teams, or both.", field="allows_teams")
        return replace(settings, title=title)

    def _check_languages(self, given: tuple[str, ...] | None, field: str) -> None:
        for language in given or ():
            try:
                self.languages.get(language)
            except (NotFound, InvalidInput):
                raise InvalidInput(
                    f"{field}: {language[:64]!r} is not a language of this judge.", field=field
                ) from None


async def change_as_organiser(
    database: Database, viewer: Viewer, name: str, change: Callable[[Tx, ContestView], Awaitable[None]]
) -> ContestView:
    """Change a contest as its organiser, in one transaction; return it as it is then."""

    async def operation(tx: Tx) -> ContestView:
        view = await find_view(tx, viewer, name)
        view.require(ContestRole.ORGANISER)
        await change(tx, view)
        return await find_view(tx, viewer, view.contest.id)

    return await database.transact(operation)


def parse_slug(slug: str) -> str:
    """Check the slug of a contest; it is also its id in the Contest API."""
    if not _SLUG.fullmatch(slug) or is_id(slug) or slug in _RESERVED_SLUGS:
        raise InvalidInput(
            "slug: must match [a-z0-9][a-z0-9_.-]{0,35}, must not end with a dot and must not be an id.", field="slug"
        )
    return slug


def check_network(text: str, field: str) -> None:
    """Check an address or a network in CIDR notation."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise InvalidInput(f"{field}: {text[:64]!r} is not a network; expected 10.0.0.0/24.", field=field) from None


def _labelled(specs: Sequence[ContestProblemSpec]) -> list[ContestProblemSpec]:
    """The problems with labels by position where none is given: A to Z, then P27, P28 and so on."""
    if len(specs) > _MAX_PROBLEMS:
        raise InvalidInput(f"problems: at most {_MAX_PROBLEMS}.", field="problems")
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
        judging_paused=spec.judging_paused,
        allowed_languages=spec.allowed_languages,
    )


def _check_unique(problems: Sequence[ContestProblem]) -> None:
    labels, ids = set[str](), set[str]()
    for index, problem in enumerate(problems):
        if problem.label in labels:
            raise InvalidInput(
                f"problems[{index}].label: {problem.label!r} is used twice.", field=f"problems[{index}].label"
            )
        if problem.problem_id in ids:
            raise InvalidInput(
                f"problems[{index}].problem: this problem is already in the contest.",
                field=f"problems[{index}].problem",
            )
        labels.add(problem.label)
        ids.add(problem.problem_id)


async def _find_user(tx: Tx, user: str) -> str:
    found = await users.find_id(tx, user)
    if found is None:
        raise InvalidInput(f"user: there is no user {user[:64]!r}.", field="user")
    return found
