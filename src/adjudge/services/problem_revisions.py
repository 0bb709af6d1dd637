"""Managing a problem: edit its metadata, compare revisions, publish, roll back, withdraw.

Only the owner and admins may change a problem. Drafts of others are not found, except by those who may read drafts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from adjudge.blobs.driver import BlobStore
from adjudge.cache.two_tier import TwoTierCache
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.domain.problem_metadata import parse_difficulty, parse_tags, parse_title
from adjudge.domain.text_diff import MOST_STEPS, Budget, unified
from adjudge.services.problem_detail import read_text
from adjudge.services.problems import ProblemService, can_view_draft
from adjudge.services.submission_access import find_hidden_contests
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
"""For all files of one response together."""
_SHOWN: Final = 500
_SEPARATE_PARTS: Final = ("cases", "statements", "editorials", "attachments", "submissions", "self_tests")
"""Parts of a definition that are compared as files or as the number of tests instead."""


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """New metadata of a problem; None keeps title and tags."""

    version: int
    title: str | None = None
    tags: Sequence[str] | None = None
    difficulty: float | None = None
    sets_difficulty: bool = False


@dataclass(frozen=True, slots=True)
class ProblemAdmin:
    """A problem with its administrative state."""

    id: str
    slug: str
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    owner_id: str
    published_revision: int | None
    updated_at: int


@dataclass(frozen=True, slots=True)
class ListedRevision:
    """A revision in a list."""

    id: str
    number: int
    state: str
    is_current: bool
    format: str
    manifest_digest: str
    created_by: str
    created_at: int
    published_at: int | None


@dataclass(frozen=True, slots=True)
class RevisionFileInfo:
    """A file of a revision."""

    path: str
    size_bytes: int
    digest: str
    decides_verdicts: bool


@dataclass(frozen=True, slots=True)
class RevisionContents:
    """A revision with all files."""

    revision: ListedRevision
    problem: dict[str, Any]
    files: list[RevisionFileInfo]
    jury: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file between two revisions."""

    path: str
    change: str
    old_bytes: int | None
    new_bytes: int | None
    diff: str | None


@dataclass(frozen=True, slots=True)
class ValueChange:
    """The change of one value between two revisions."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class RevisionComparison:
    """Differences between two revisions."""

    old: int
    new: int
    changes_verdicts: bool
    old_tests: int
    new_tests: int
    files: list[FileChange]
    values: list[ValueChange]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class ProblemRevisionService:
    """Editing, comparing and publishing of a problem's revisions."""

    database: Database
    blobs: BlobStore
    cache: TwoTierCache
    problems: ProblemService

    async def get_problem_admin(self, viewer: Viewer, name: str) -> ProblemAdmin:
        """A problem with its administrative state."""
        problem = await self.problems.find_editable(viewer, name)
        return await self._state(problem.id)

    async def _state(self, problem_id: str) -> ProblemAdmin:
        async def read(tx: Tx) -> ProblemAdmin:
            row = await problem_queries.find(tx, problem_id)
            if row is None:
                raise NotFound("problem", problem_id)
            published = row.published_revision_id
            number = (await problem_queries.find_revision(tx, published)).number if published else None
            return ProblemAdmin(
                id=row.id,
                slug=row.slug,
                title=row.title,
                tags=list(row.tags),
                difficulty=row.difficulty,
                version=row.version,
                owner_id=row.owner_id,
                published_revision=number,
                updated_at=row.updated_at,
            )

        return await self.database.read(read)

    async def update_metadata(self, viewer: Viewer, name: str, update: MetadataUpdate) -> ProblemAdmin:
        """Change title, tags or difficulty; tests and statements change only with a new revision."""
        problem = await self.problems.find_editable(viewer, name)
        title = parse_title(update.title) if update.title is not None else problem.title
        tags = parse_tags(update.tags) if update.tags is not None else problem.tags
        difficulty = parse_difficulty(update.difficulty) if update.sets_difficulty else problem.difficulty

        async def write(tx: Tx) -> None:
            await problem_commands.update(
                tx, problem_id=problem.id, version=update.version, title=title, tags=tags, difficulty=difficulty
            )

        await self.database.transact(write)
        return await self._after_write(problem.id)

    async def _after_write(self, problem_id: str) -> ProblemAdmin:
        """Refresh the cache of this process, so that it shows the change at once, and return the new state."""
        await self.cache.revisions.refresh()
        return await self._state(problem_id)

    async def publish_revision(
        self, viewer: Viewer, name: str, *, version: int, number: int | None, reason: str, action: str = "publish"
    ) -> ProblemAdmin:
        """Publish a revision; without a number, the previously published one."""
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

    async def withdraw_problem(self, viewer: Viewer, name: str, *, version: int, reason: str) -> ProblemAdmin:
        """Withdraw a problem: it cannot be seen or submitted to until it is published again."""
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

    async def list_revisions(
        self, viewer: Viewer, name: str, *, before: int | None, limit: int
    ) -> list[ListedRevision]:
        """A problem's revisions, newest first."""
        problem = await self._with_drafts(viewer, name)
        rows = await self.database.read(
            lambda tx: problem_queries.list_revisions(tx, problem.id, before_number=before, limit=limit)
        )
        return [_item(problem, row) for row in rows]

    async def get_revision(self, viewer: Viewer, name: str, number: int) -> RevisionContents:
        problem = await self._with_drafts(viewer, name)

        async def read(tx: Tx) -> tuple[RevisionRow, list[RevisionFileRow], dict[str, Any] | None]:
            row = await problem_queries.find_revision_by_number(tx, problem.id, number)
            return row, await problem_queries.list_files(tx, row.id), await imports.find_verification(tx, row.id)

        row, files, jury = await self.database.read(read)
        return RevisionContents(
            revision=_item(problem, row),
            problem=row.definition,
            files=[
                RevisionFileInfo(
                    path=file.path, size_bytes=file.size_bytes, digest=file.digest, decides_verdicts=file.is_secret
                )
                for file in files
            ],
            jury=jury,
        )

    async def tests(self, viewer: Viewer, name: str, number: int) -> list[case_stats.CaseStats]:
        """Statistics of the tests, without contests that are not over and whose jury the viewer does not belong to."""
        problem = await self._with_drafts(viewer, name)

        async def read(tx: Tx) -> list[case_stats.CaseStats]:
            row = await problem_queries.find_revision_by_number(tx, problem.id, number)
            hidden = await find_hidden_contests(tx, viewer, owned_problem_id=problem.id, by_result=False)
            return await case_stats.of_revision(tx, problem_id=problem.id, revision_id=row.id, hidden_contests=hidden)

        return await self.database.read(read)

    async def diff_revisions(self, viewer: Viewer, name: str, *, old: int, new: int) -> RevisionComparison:
        """The differences between two revisions: files, limits and other values, tests."""
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
        return RevisionComparison(
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
    ) -> FileChange:
        return FileChange(
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


def _item(problem: ProblemRow, row: RevisionRow) -> ListedRevision:
    return ListedRevision(
        id=row.id,
        number=row.number,
        state=row.state,
        is_current=row.id == problem.published_revision_id,
        format=row.format,
        manifest_digest=row.manifest_digest,
        created_by=row.created_by,
        created_at=row.created_at,
        published_at=row.published_at,
    )


def _digest(file: RevisionFileRow | None) -> str | None:
    return file.digest if file else None


def _plain(row: RevisionRow) -> dict[str, Any]:
    problem: dict[str, Any] = row.definition.get("problem", {})
    return {name: value for name, value in problem.items() if name not in _SEPARATE_PARTS}


def _tests(row: RevisionRow) -> int:
    return len(row.definition.get("problem", {}).get("cases", ()))


def _changed_values(old: Any, new: Any, name: str = "") -> Iterator[ValueChange]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changed_values(old.get(key), new.get(key), f"{name}.{key}" if name else key)
    elif old != new:
        yield ValueChange(name=name, old=old, new=new)


def _unified(path: str, before: str, after: str, budget: Budget) -> str:
    return "\n".join(islice(unified(before.splitlines(), after.splitlines(), path, budget), _DIFF_LINES))
