"""Problems of a contest as clients of DOMjudge upload them: first the list, then the package of each.

A problem that does not exist yet is created with a revision without files. It keeps the label and the colour in the
contest until its package is uploaded, and does not accept submissions. A judge run of it would be a system error.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from adjudge.contests import lifecycle
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.domain.problem import AWAITING_PACKAGE, Case, PackageFormat, Problem
from adjudge.domain.problem_metadata import parse_slug, parse_title
from adjudge.packages.findings import Finding, Severity
from adjudge.packages.load import default_name
from adjudge.packages.problem_json import problem_to_json
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.contest_problem_specs import ContestProblemSpec, resolve_specs
from adjudge.services.contests import ContestService
from adjudge.services.domjudge_files import ListedPackage
from adjudge.services.problem_imports import ImportRequest, ProblemImportService
from adjudge.services.viewer import Viewer
from adjudge.store import Tx
from adjudge.store.contests import commands, queries
from adjudge.store.contests.models import ContestProblemRow
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.imports import ImportRow
from adjudge.store.problems.models import NewProblem, NewRevision

IMPORT_WAIT_SEC: Final = 300
"""How long an upload waits for its import; requests of this path have as much more time."""


@dataclass(frozen=True, slots=True)
class UploadedProblem:
    """A problem of a contest after its package was imported."""

    label: str
    slug: str
    messages: list[str]


@dataclass(frozen=True, slots=True)
class DomjudgeProblemService:
    """Adds problems to contests, for their organisers."""

    contests: ContestService
    imports: ProblemImportService
    new_id: IdFactory = new_id

    async def add_listed(self, viewer: Viewer, contest: str, listed: Sequence[ListedPackage]) -> list[str]:
        """Add the problems of a list, or change the labels and colours of those that the contest has; their labels."""

        async def operation(tx: Tx) -> list[str]:
            view = await _lock(tx, viewer, contest)
            for item in listed:
                await self._create_missing(tx, viewer, parse_slug(item.slug, "id"), item.title)
            rows = await queries.problems(tx, view.contest.id)
            await self._save(tx, view, _merge(rows, listed))
            return [item.label for item in listed]

        return await self.contests.database.transact(operation)

    async def upload(
        self, viewer: Viewer, contest: str, pieces: AsyncIterable[bytes], file_name: str, problem: str = ""
    ) -> UploadedProblem:
        """Import a package and pin its revision in the contest; ``problem`` is the label of one that it has."""
        slug = await self._find_target(viewer, contest, problem, file_name)
        started = await self.imports.start_import(viewer, ImportRequest(slug=slug), pieces, file_name)
        row = await self._wait(viewer, started.id)
        if row.state != "succeeded" or row.slug is None or row.revision is None:
            raise InvalidInput("\n".join([f"zip: {row.error or 'not imported'}", *_messages(row)]), field="zip")
        label = await self._pin(viewer, contest, row.slug, row.revision)
        await self.imports.start_verification(viewer, row.slug, row.revision)
        done = f"Problem {label} has revision {row.revision} of {row.slug}. Its jury solutions are being judged."
        return UploadedProblem(label, row.slug, [*_messages(row), done])

    async def _find_target(self, viewer: Viewer, contest: str, problem: str, file_name: str) -> str:
        """The slug of the problem to import; refused before anything is received if the viewer may not."""
        viewer.require(Permission.PROBLEM_WRITE)
        view = await self.contests.access.find_as(viewer, contest, ContestRole.ORGANISER)
        lifecycle.check_changeable(view.contest)
        if not problem:
            return parse_slug(default_name(Path(file_name or "problem.zip")), "zip")
        rows = await self.contests.list_problems(view)
        found = next((row.slug for row in rows if problem in (row.problem.label, row.slug)), None)
        if found is None:
            raise NotFound("contest_problem", problem)
        return found

    async def _wait(self, viewer: Viewer, import_id: str) -> ImportRow:
        try:
            async with (
                asyncio.timeout(IMPORT_WAIT_SEC),
                aclosing(await self.imports.watch_import(viewer, import_id)) as states,
            ):
                async for state in states:
                    if state is not None and state.row.finished_at is not None:
                        return state.row
        except TimeoutError:
            pass
        raise Unavailable(
            f"The package is still being imported (import {import_id}). When it has ended, add its revision to the "
            "problems of the contest, or upload it again."
        )

    async def _pin(self, viewer: Viewer, contest: str, slug: str, revision: int) -> str:
        async def operation(tx: Tx) -> str:
            view = await _lock(tx, viewer, contest)
            rows = await queries.problems(tx, view.contest.id)
            specs = [_keep(row) for row in rows]
            pinned = next((index for index, row in enumerate(rows) if row.slug == slug), None)
            if pinned is None:
                pinned = len(specs)
                specs.append(ContestProblemSpec(slug, label=_free_label(rows)))
            was_placeholder = pinned < len(rows) and await _is_placeholder(tx, rows[pinned])
            accepts = specs[pinned].accepts or was_placeholder
            specs[pinned] = replace(specs[pinned], revision=revision, accepts=accepts)
            await self._save(tx, view, specs)
            return specs[pinned].label or ""

        return await self.contests.database.transact(operation)

    async def _create_missing(self, tx: Tx, viewer: Viewer, slug: str, title: str) -> None:
        """Create a problem that does not exist, so that the contest can refer to it."""
        if await problem_queries.find(tx, slug) is not None:
            return
        viewer.require(Permission.PROBLEM_WRITE)
        problem = NewProblem(self.new_id(), slug, parse_title(title, "name"), viewer.id)
        await problem_commands.insert(tx, problem)
        definition = Problem(
            slug,
            PackageFormat(AWAITING_PACKAGE),
            titles={"en": problem.title},
            cases=(Case(AWAITING_PACKAGE, "", f"{AWAITING_PACKAGE}.in"),),
        )
        digest = hashlib.sha256(problem.id.encode()).hexdigest()
        revision = NewRevision(
            self.new_id(), problem.id, AWAITING_PACKAGE, digest, viewer.id, problem_to_json(definition)
        )
        await problem_commands.add_revision(tx, revision)

    async def _save(self, tx: Tx, view: ContestView, specs: Sequence[ContestProblemSpec]) -> None:
        contest_id, viewer = view.contest.id, view.viewer
        problems = await resolve_specs(tx, viewer, contest_id, specs, self.contests.languages)
        revisions = await problem_queries.find_revisions(tx, [item.revision_id for item in problems])
        checked = [
            replace(item, accepts=item.accepts and revisions[item.revision_id].format != AWAITING_PACKAGE)
            for item in problems
        ]
        await lifecycle.set_problems(tx, contest_id, checked, actor=viewer.id, reason="")


async def _lock(tx: Tx, viewer: Viewer, contest: str) -> ContestView:
    view = await find_view(tx, viewer, contest)
    view.require(ContestRole.ORGANISER)
    await commands.lock(tx, view.contest.id)
    return view


async def _is_placeholder(tx: Tx, row: ContestProblemRow) -> bool:
    return (await problem_queries.find_revision(tx, row.problem.revision_id)).format == AWAITING_PACKAGE


def _merge(rows: Sequence[ContestProblemRow], listed: Sequence[ListedPackage]) -> list[ContestProblemSpec]:
    """The problems of the contest with the listed ones; of equal colours, only the first is kept."""
    specs = {row.slug: _keep(row) for row in rows}
    for item in listed:
        known = specs.get(item.slug) or ContestProblemSpec(item.slug)
        specs[item.slug] = replace(known, label=item.label, rgb=item.rgb or known.rgb, color=item.color or known.color)
    rgb, color = set[str](), set[str]()
    return [replace(spec, rgb=_once(spec.rgb, rgb), color=_once(spec.color, color)) for spec in specs.values()]


def _once(value: str | None, used: set[str]) -> str | None:
    if value is None or value.casefold() in used:
        return None
    used.add(value.casefold())
    return value


def _keep(row: ContestProblemRow) -> ContestProblemSpec:
    """The problem as it is."""
    item = row.problem
    return ContestProblemSpec(
        problem=row.slug,
        label=item.label,
        alias=item.alias,
        rgb=item.rgb,
        color=item.color,
        points_micro=item.points_micro,
        opens_ct_us=item.opens_ct_us,
        closes_ct_us=item.closes_ct_us,
        accepts=item.accepts,
        allowed_languages=item.allowed_languages,
    )


def _free_label(rows: Sequence[ContestProblemRow]) -> str:
    used = {row.problem.label for row in rows}
    letters = (chr(ord("A") + index) for index in range(26))
    found = next((letter for letter in letters if letter not in used), None)
    if found is None:
        raise Conflict("All labels from A to Z are used; upload a list of problems with labels first.")
    return found


def _messages(row: ImportRow) -> list[str]:
    """The findings of an import, as lines."""
    return [
        str(Finding(Severity(item["severity"]), item["path"], item["line"], item["message"], item["fix"]))
        for item in row.findings
    ]
