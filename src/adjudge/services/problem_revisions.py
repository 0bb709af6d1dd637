"""What a setter does with a problem: edit, compare revisions, publish, roll back, withdraw.

A problem is its owner's and the admins'. Others' drafts do not exist for a setter; those who may read drafts see them
and change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from adjudge.api.pagination import decode_cursor, encode_cursor
from adjudge.api.schema.problems import (
    FileDiff,
    ProblemAdminRead,
    ProblemUpdate,
    RevisionDiff,
    RevisionFileRead,
    RevisionPage,
    RevisionRead,
    RevisionSummary,
    RevisionTests,
    TestStatistics,
    ValueDiff,
)
from adjudge.api.timestamps import format_timestamp
from adjudge.blobs.driver import BlobStore
from adjudge.cache.two_tier import TwoTierCache
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.problem_metadata import parse_difficulty, parse_tags, parse_title
from adjudge.domain.text_diff import MOST_STEPS, Budget, unified
from adjudge.services.problem_detail import read_text
from adjudge.services.problems import ProblemService, can_view_draft
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.ops import audit_log
from adjudge.store.problems import case_stats, imports
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import ProblemRow, RevisionFileRow, RevisionRow

_DIFF_BYTES: Final = 64 * 1024
_DIFF_LINES: Final = 400
_DIFF_STEPS: Final = 4 * MOST_STEPS
"""For all files of one answer together."""
_SHOWN: Final = 500
_APART: Final = ("cases", "statements", "editorials", "attachments", "submissions", "self_tests")
"""Parts of a definition that the list of files or the count of tests tells of."""


@dataclass(frozen=True, slots=True)
class ProblemRevisionService:
    """Editing, comparing and publishing of a problem's revisions."""

    database: Database
    blobs: BlobStore
    cache: TwoTierCache
    problems: ProblemService

    async def get_problem_admin(self, viewer: Viewer, name: str) -> ProblemAdminRead:
        """A problem with its administrative state."""
        problem = await self.problems.find_editable(viewer, name)
        return await self._state(problem.id)

    async def _state(self, problem_id: str) -> ProblemAdminRead:
        async def read(tx: Tx) -> ProblemAdminRead:
            row = await problem_queries.find(tx, problem_id)
            if row is None:
                raise NotFound("problem", problem_id)
            published = row.published_revision_id
            number = (await problem_queries.find_revision(tx, published)).number if published else None
            return ProblemAdminRead(
                id=row.id,
                slug=row.slug,
                title=row.title,
                tags=list(row.tags),
                difficulty=row.difficulty,
                version=row.version,
                owner_id=row.owner_id,
                published_revision=number,
                updated_at=format_timestamp(row.updated_at),
            )

        return await self.database.read(read)

    async def update_metadata(self, viewer: Viewer, name: str, patch: ProblemUpdate) -> ProblemAdminRead:
        """Change what the catalogue says; tests and statements change by new revisions only."""
        problem = await self.problems.find_editable(viewer, name)
        given = patch.model_fields_set
        title = parse_title(patch.title) if patch.title is not None else problem.title
        tags = parse_tags(patch.tags) if patch.tags is not None else problem.tags
        difficulty = parse_difficulty(patch.difficulty) if "difficulty" in given else problem.difficulty

        async def write(tx: Tx) -> None:
            await problem_commands.update(
                tx, problem_id=problem.id, version=patch.version, title=title, tags=tags, difficulty=difficulty
            )

        await self.database.transact(write)
        return await self._after_write(problem.id)

    async def _after_write(self, problem_id: str) -> ProblemAdminRead:
        """Whoever wrote reads what they wrote, from this process at once."""
        await self.cache.revisions.refresh()
        return await self._state(problem_id)

    async def publish_revision(
        self, viewer: Viewer, name: str, *, version: int, number: int | None, reason: str, action: str = "publish"
    ) -> ProblemAdminRead:
        """Publish a revision; without a number, the one that was published before the present one."""
        problem = await self.problems.find_editable(viewer, name)

        async def write(tx: Tx) -> None:
            revision = await _target(tx, problem, number)
            await problem_commands.publish(tx, problem_id=problem.id, revision_id=revision.id, version=version)
            details = {problem.id: {"revision": revision.number}}
            await _record(tx, viewer, f"problem.{action}", details, reason)
            event = {"problem_id": problem.id, "slug": problem.slug, "revision": revision.number}
            await chain_triggers.fire_event(tx, chain_triggers.PROBLEM_PUBLISHED, event)

        await self.database.transact(write)
        return await self._after_write(problem.id)

    async def withdraw_problem(self, viewer: Viewer, name: str, *, version: int, reason: str) -> ProblemAdminRead:
        """Take a problem back: nobody sees it or submits to it until it is published again."""
        problem = await self.problems.find_editable(viewer, name)

        async def write(tx: Tx) -> None:
            await problem_commands.withdraw(tx, problem_id=problem.id, version=version)
            await _record(tx, viewer, "problem.withdraw", {problem.id: {}}, reason)

        await self.database.transact(write)
        return await self._after_write(problem.id)

    async def _with_drafts(self, viewer: Viewer, name: str) -> ProblemRow:
        problem = await self.problems.find_visible(viewer, name)
        if not can_view_draft(viewer, problem):
            raise NotFound("problem", name)
        return problem

    async def list_revisions(self, viewer: Viewer, name: str, *, cursor: str | None, limit: int) -> RevisionPage:
        """A problem's revisions, the latest first."""
        problem = await self._with_drafts(viewer, name)
        place = decode_cursor(cursor, [int])
        before = int(place[0] or 0) if place else None
        rows = await self.database.read(
            lambda tx: problem_queries.list_revisions(tx, problem.id, before_number=before, limit=limit + 1)
        )
        more = encode_cursor([rows[limit - 1].number]) if len(rows) > limit else None
        return RevisionPage(items=[_item(problem, row) for row in rows[:limit]], next=more)

    async def get_revision(self, viewer: Viewer, name: str, number: int) -> RevisionRead:
        """All of one revision."""
        problem = await self._with_drafts(viewer, name)

        async def read(tx: Tx) -> tuple[RevisionRow, list[RevisionFileRow], dict[str, Any] | None]:
            row = await problem_queries.find_revision_by_number(tx, problem.id, number)
            return row, await problem_queries.list_files(tx, row.id), await imports.find_verification(tx, row.id)

        row, files, jury = await self.database.read(read)
        return RevisionRead(
            revision=_item(problem, row),
            problem=row.definition,
            files=[
                RevisionFileRead(
                    path=file.path, size_bytes=file.size_bytes, digest=file.digest, decides_verdicts=file.is_secret
                )
                for file in files
            ],
            jury=jury,
        )

    async def tests(self, viewer: Viewer, name: str, number: int) -> RevisionTests:
        """How programs fare on each test of a revision."""
        problem = await self._with_drafts(viewer, name)

        async def read(tx: Tx) -> list[case_stats.CaseStats]:
            row = await problem_queries.find_revision_by_number(tx, problem.id, number)
            return await case_stats.of_revision(tx, problem_id=problem.id, revision_id=row.id)

        found = await self.database.read(read)
        return RevisionTests(
            items=[
                TestStatistics(
                    name=test.name, runs=test.runs, verdicts=test.verdicts, time_ms=test.time_ms, mem_kb=test.mem_kb
                )
                for test in found
            ]
        )

    async def diff_revisions(self, viewer: Viewer, name: str, *, old: int, new: int) -> RevisionDiff:
        """What differs between two revisions: files, limits and whatever else a package says, tests."""
        if old == new:
            raise InvalidInput("new: must differ from old.", field="new")
        problem = await self._with_drafts(viewer, name)

        async def read(tx: Tx, number: int) -> tuple[RevisionRow, dict[str, RevisionFileRow]]:
            row = await problem_queries.find_revision_by_number(tx, problem.id, number)
            return row, {file.path: file for file in await problem_queries.list_files(tx, row.id)}

        before, old_files = await self.database.read(lambda tx: read(tx, old))
        after, new_files = await self.database.read(lambda tx: read(tx, new))
        paths = sorted(
            path for path in {*old_files, *new_files} if _digest(old_files.get(path)) != _digest(new_files.get(path))
        )
        values = list(_changed_values(_plain(before), _plain(after)))
        budget = Budget(steps=_DIFF_STEPS)
        return RevisionDiff(
            old=old,
            new=new,
            changes_verdicts=before.manifest_digest != after.manifest_digest,
            old_tests=_tests(before),
            new_tests=_tests(after),
            files=[
                await self._file_change(path, old_files.get(path), new_files.get(path), budget)
                for path in paths[:_SHOWN]
            ],
            values=values[:_SHOWN],
            is_cut=len(paths) > _SHOWN or len(values) > _SHOWN,
        )

    async def _file_change(
        self, path: str, old: RevisionFileRow | None, new: RevisionFileRow | None, budget: Budget
    ) -> FileDiff:
        return FileDiff(
            path=path,
            change="added" if old is None else "removed" if new is None else "changed",
            old_bytes=old.size_bytes if old else None,
            new_bytes=new.size_bytes if new else None,
            diff=await self._text_diff(path, old, new, budget),
        )

    async def _text_diff(
        self, path: str, old: RevisionFileRow | None, new: RevisionFileRow | None, budget: Budget
    ) -> str | None:
        if any(file is not None and file.size_bytes > _DIFF_BYTES for file in (old, new)):
            return None
        before, after = [await read_text(self.blobs, file, _DIFF_BYTES) if file else "" for file in (old, new)]
        if "\ufffd" in before + after:
            return None
        return await asyncio.to_thread(_unified, path, before, after, budget)


async def _target(tx: Tx, problem: ProblemRow, number: int | None) -> RevisionRow:
    if number is not None:
        return await problem_queries.find_revision_by_number(tx, problem.id, number)
    before = await problem_queries.find_previous_published_revision(tx, problem.id)
    if before is None:
        raise Conflict("No previously published revision; specify the revision to roll back to.", problem_id=problem.id)
    return before


async def _record(tx: Tx, viewer: Viewer, action: str, objects: Mapping[str, Mapping[str, Any]], reason: str) -> None:
    await audit_log.record(tx, actor=viewer.id, action=action, object_kind="problem", objects=objects, reason=reason)


def _item(problem: ProblemRow, row: RevisionRow) -> RevisionSummary:
    return RevisionSummary(
        id=row.id,
        number=row.number,
        state=row.state,
        is_current=row.id == problem.published_revision_id,
        format=row.format,
        manifest_digest=row.manifest_digest,
        created_by=row.created_by,
        created_at=format_timestamp(row.created_at),
        published_at=format_timestamp(row.published_at),
    )


def _digest(file: RevisionFileRow | None) -> str | None:
    return file.digest if file else None


def _plain(row: RevisionRow) -> dict[str, Any]:
    problem: dict[str, Any] = row.definition.get("problem", {})
    return {name: value for name, value in problem.items() if name not in _APART}


def _tests(row: RevisionRow) -> int:
    return len(row.definition.get("problem", {}).get("cases", ()))


def _changed_values(old: Any, new: Any, name: str = "") -> Iterator[ValueDiff]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changed_values(old.get(key), new.get(key), f"{name}.{key}" if name else key)
    elif old != new:
        yield ValueDiff(name=name, old=old, new=new)


def _unified(path: str, before: str, after: str, budget: Budget) -> str:
    return "\n".join(islice(unified(before.splitlines(), after.splitlines(), path, budget), _DIFF_LINES))
