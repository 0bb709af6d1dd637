"""Contests: create, configure and clone them; their problems and roles."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests import lifecycle
from adjudge.contests.awards import parse_award_rules
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import IdFactory, is_id, new_id
from adjudge.judge.languages import Languages
from adjudge.services.contest_access import ContestAccess, ContestView, find_view, make_views
from adjudge.services.contest_only import check_change
from adjudge.services.contest_problem_specs import (
    ContestProblemSpec,
    SavedProblems,
    check_languages,
    resolve_specs,
)
from adjudge.services.viewer import ContestOnlyMode, Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import clarifications, commands, materials, participants, queries
from adjudge.store.contests.models import (
    ContestProblemRow,
    ContestRoleRow,
    ContestSettings,
)

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,34}[a-z0-9_-]|[a-z0-9]")
_MAX_TITLE: Final = 200
_READ_AHEAD: Final = 500
"""Contests that are read at once to fill a page, if contests of it are hidden."""
_RESERVED_SLUGS: Final = frozenset({"import", "new"})


@dataclass(frozen=True, slots=True)
class ContestService:
    """Operations on contests."""

    database: Database
    access: ContestAccess
    languages: Languages
    new_id: IdFactory = new_id
    contest_only: ContestOnlyMode | None = None
    """Informed of changes, so that they take effect at once in this process."""

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
        checked = self.checked(settings)
        check_change(viewer, None, checked)

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
            settings = self.checked(change(view.contest.settings))
            check_change(viewer, view.contest.settings, settings)
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

        saved = await change_as_organiser(self.database, viewer, name, operation)
        if self.contest_only is not None:
            self.contest_only.forget()
        return saved

    async def clone(self, viewer: Viewer, name: str, *, slug: str, title: str) -> ContestView:
        """Copy settings, problems, groups, canned answers, materials and roles into a new draft."""
        contest_id = self.new_id()

        async def operation(tx: Tx) -> ContestView:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER)
            await commands.lock(tx, view.contest.id)  # a material deleted meanwhile could lose its content
            settings = replace(
                view.contest.settings,
                title=title,
                starts_at=None,
                countdown_pause_us=None,
                contest_only=False,
                contest_only_from=None,
                contest_only_until=None,
                registration_opens_at=None,
                registration_closes_at=None,
            )
            await commands.insert(tx, contest_id, parse_slug(slug), self.checked(settings), created_by=viewer.id)
            problems = await queries.problems(tx, view.contest.id)
            copies = [replace(row.problem, contest_id=contest_id, judging_paused=False) for row in problems]
            await lifecycle.set_problems(tx, contest_id, copies, actor=viewer.id, reason="")
            await self._copy_definitions(tx, view.contest.id, contest_id, actor=viewer.id)
            roles = [(row.user_id, row.role) for row in await queries.roles(tx, view.contest.id)]
            roles.append((viewer.id, ContestRole.ORGANISER))
            await commands.grant_roles(tx, contest_id, roles, actor=viewer.id, granted_by=viewer.id)
            return await find_view(tx, viewer, contest_id)

        return await self.database.transact(operation)

    async def _copy_definitions(self, tx: Tx, from_id: str, to_id: str, *, actor: str) -> None:
        """Copy the groups without participants, the canned answers and the materials, whose blobs are shared."""
        groups = await participants.groups(tx, from_id)
        await participants.upsert_groups(tx, [replace(row, id=self.new_id(), contest_id=to_id) for row in groups])
        canned = await clarifications.canned_answers(tx, from_id)
        await clarifications.insert_canned(tx, [replace(row, id=self.new_id(), contest_id=to_id) for row in canned])
        files = await materials.list_all(tx, from_id)
        copies = [replace(row, id=self.new_id(), contest_id=to_id, created_by=actor) for row in files]
        await materials.upsert(tx, copies)

    # Problems and roles.

    async def list_problems(self, view: ContestView) -> list[ContestProblemRow]:
        """The problems of a contest that the viewer may see."""
        if not view.sees_problems:
            return []
        rows = await self.database.read(lambda tx: queries.problems(tx, view.contest.id))
        return [row for row in rows if view.sees_problem(row.problem)]

    async def save_problems(
        self, viewer: Viewer, name: str, specs: Sequence[ContestProblemSpec], *, version: int | None = None
    ) -> SavedProblems:
        """Replace the problems; with ``version``, only if nobody changed the contest since it was read."""

        async def operation(tx: Tx) -> SavedProblems:
            view = await find_view(tx, viewer, name)
            view.require(ContestRole.ORGANISER)
            contest_id = view.contest.id
            await lifecycle.check_version(tx, contest_id, version)
            problems = await resolve_specs(tx, viewer, contest_id, specs, self.languages)
            await lifecycle.set_problems(tx, contest_id, problems, actor=viewer.id, reason="")
            contest = await queries.find_contest(tx, contest_id)
            return SavedProblems(await queries.problems(tx, contest_id), contest.version)

        return await self.database.transact(operation)

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

    def checked(self, settings: ContestSettings) -> ContestSettings:
        """Check the values of all settings; each error names its field."""
        title = settings.title.strip()
        if not 0 < len(title) <= _MAX_TITLE:
            raise InvalidInput(f"title: expected 1 to {_MAX_TITLE} characters.", field="title")
        lifecycle.check_settings(settings)
        parse_award_rules(settings.awards_cfg, "awards_cfg")
        check_languages(self.languages, settings.allowed_languages, "allowed_languages")
        for index, text in enumerate(settings.address_ranges or ()):
            check_network(text, f"address_ranges[{index}]")
        for field in ("max_team_members", "submissions_per_minute", "submissions_per_problem"):
            value = getattr(settings, field)
            if value is not None and value < 1:
                raise InvalidInput(f"{field}: must be at least 1.", field=field)
        if not settings.allows_individuals and not settings.allows_teams:
            raise InvalidInput("allows_teams: allow individuals, teams, or both.", field="allows_teams")
        return replace(settings, title=title)


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


async def _find_user(tx: Tx, user: str) -> str:
    found = await users.find_id(tx, user)
    if found is None:
        raise InvalidInput(f"user: there is no user {user[:64]!r}.", field="user")
    return found
