"""Problem lists, problem pages and public files for all users, cached where possible."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from adjudge.blobs.driver import BlobStore
from adjudge.cache.entry import CachedValue, make_entry
from adjudge.cache.policies import CacheEntity
from adjudge.cache.two_tier import TwoTierCache
from adjudge.contests.times import hidden_contests
from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Permission, Role
from adjudge.judge.languages import Languages
from adjudge.packages.problem_json import problem_from_json
from adjudge.services.problem_detail import ProblemDetail, ProblemRevision, build_problem_detail, public_files
from adjudge.services.problem_stats import ProblemStatsService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.ops import cache_revisions
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import (
    ProblemFilter,
    ProblemListRow,
    ProblemRow,
    RevisionFileRow,
    RevisionRow,
)
from adjudge.store.problems.stats import ProblemStats

_UNTRIED: Final = ProblemStats()


ProblemKey = tuple[str | float, str]
"""The last problem of a page: its sort key and its id."""


@dataclass(frozen=True, slots=True)
class ListedProblem:
    """A problem in a list."""

    id: str
    slug: str
    title: str
    tags: list[str]
    difficulty: float | None
    revision: int | None
    version: int
    updated_at: int
    solved: bool | None
    tried: bool | None
    solvers: int
    accepted: int
    judged: int
    acceptance: float | None


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file to download."""

    name: str
    digest: str
    size_bytes: int


def can_view_draft(viewer: Viewer, problem: ProblemRow) -> bool:
    """Whether the viewer may see drafts and jury files: the owner, and users who may read drafts."""
    return viewer.can(Permission.PROBLEM_READ_DRAFT) or can_edit(viewer, problem)


def can_edit(viewer: Viewer, problem: ProblemRow) -> bool:
    """Whether the viewer may change the problem: its owner, and admins."""
    if not viewer.can(Permission.PROBLEM_WRITE):
        return False
    return viewer.role is Role.ADMIN or problem.owner_id == viewer.user_id


@dataclass(frozen=True, slots=True)
class ProblemService:
    """Problem lists, problem pages and their files. Whatever may be cached is cached."""

    database: Database
    blobs: BlobStore
    cache: TwoTierCache
    languages: Languages
    problem_stats: ProblemStatsService
    encode_page: Callable[[Sequence[ListedProblem], ProblemKey | None], bytes]
    encode_detail: Callable[[ProblemDetail], bytes]
    """How the API encodes them; the cache keeps encoded responses."""

    async def find_visible(self, viewer: Viewer, name: str) -> ProblemRow:
        """A problem that the viewer may see; else raise ``NotFound``."""
        problem = await self.database.read(lambda tx: problem_queries.find(tx, name))
        if problem is None or (problem.published_revision_id is None and not can_view_draft(viewer, problem)):
            raise NotFound("problem", name)
        return problem

    async def find_editable(self, viewer: Viewer, name: str) -> ProblemRow:
        problem = await self.find_visible(viewer, name)
        if not can_edit(viewer, problem):
            raise NotFound("problem", name)
        return problem

    async def list_problems(
        self, viewer: Viewer, wanted: ProblemFilter, *, after: ProblemKey | None, limit: int
    ) -> CachedValue:
        """One page, encoded. Visitors share a cached page; a page with the progress of a user is cached per process."""

        async def load() -> bytes:
            async def read(tx: Tx) -> list[ProblemListRow]:
                hidden = await hidden_contests(tx) if viewer.user_id is not None else ""
                return await problem_queries.list_problems(
                    tx, wanted, viewer_id=viewer.user_id, after=after, limit=limit + 1, hidden_contests=hidden
                )

            rows = await self.database.read(read)
            next_key = (rows[limit - 1].sort_key, rows[limit - 1].id) if len(rows) > limit else None
            stats_by_problem = await self.problem_stats.list_problem_stats()
            items = [_item(row, viewer, stats_by_problem.get(row.id, _UNTRIED)) for row in rows[:limit]]
            return self.encode_page(items, next_key)

        if wanted.owner_id is not None:
            return _uncached(await load())
        query = json.dumps([asdict(wanted), after, limit])
        digest = hashlib.blake2b(query.encode(), digest_size=16).hexdigest()
        if viewer.user_id is None:
            found = await self.cache.get(CacheEntity.PROBLEM_LIST, digest, load, revision=cache_revisions.CATALOGUE)
        else:
            selector = f"{viewer.user_id}:{digest}@{self.cache.revisions.current(cache_revisions.CATALOGUE)}"
            found = await self.cache.get(
                CacheEntity.USER_LIST, selector, load, revision=user_list_cache_key(viewer.user_id)
            )
        if found is None:
            raise NotFound("page", "problems")
        return found

    async def get_problem(self, viewer: Viewer, name: str, languages: tuple[str, ...]) -> CachedValue:
        """A problem, encoded. A published one is the same for all viewers with the same language, and is cached."""

        async def load() -> bytes | None:
            return await self._encoded(name, languages)

        selector, revision = _detail_key(name, languages)
        found = await self.cache.get(CacheEntity.PROBLEM, selector, load, revision=revision)
        return found if found is not None else await self.get_draft(viewer, name, languages)

    def peek(self, name: str, languages: tuple[str, ...]) -> CachedValue | None:
        """A published problem, if it is in the cache of this process."""
        selector, revision = _detail_key(name, languages)
        return self.cache.peek(CacheEntity.PROBLEM, selector, revision=revision)

    async def get_draft(
        self, viewer: Viewer, name: str, languages: tuple[str, ...], number: int | None = None
    ) -> CachedValue:
        """A draft revision, for users who may see it; by default the latest one."""
        problem = await self.database.read(lambda tx: problem_queries.find(tx, name))
        if problem is None or not can_view_draft(viewer, problem):
            raise NotFound("problem", name)

        async def read(tx: Tx) -> RevisionRow | None:
            if number is None:
                return await problem_queries.find_latest_revision(tx, problem.id)
            return await problem_queries.find_revision_by_number(tx, problem.id, number)

        revision = await self.database.read(read)
        if revision is None:
            raise NotFound("revision", f"{name} has no revision")
        return _uncached(await self._render(problem, revision, languages))

    async def _encoded(self, name: str, languages: tuple[str, ...]) -> bytes | None:
        async def read(tx: Tx) -> tuple[ProblemRow, RevisionRow] | None:
            problem = await problem_queries.find(tx, name)
            if problem is None or problem.published_revision_id is None:
                return None
            return problem, await problem_queries.find_revision(tx, problem.published_revision_id)

        found = await self.database.read(read)
        return await self._render(*found, languages) if found else None

    async def _render(self, row: ProblemRow, revision: RevisionRow, languages: tuple[str, ...]) -> bytes:
        files = await self.database.read(lambda tx: problem_queries.list_files(tx, revision.id))
        facts = ProblemRevision(
            row, revision, problem_from_json(revision.definition), {file.path: file for file in files}
        )
        shown = await build_problem_detail(self.blobs, facts, languages, self.languages)
        return await asyncio.to_thread(self.encode_detail, shown)

    async def get_public_file(self, viewer: Viewer, name: str, file_name: str) -> PublicFile:
        """An attachment, picture or statement of the published revision; of a draft, for users who may see it."""
        problem = await self.find_visible(viewer, name)

        async def read(tx: Tx) -> tuple[RevisionRow | None, dict[str, RevisionFileRow]]:
            if problem.published_revision_id is not None:
                revision: RevisionRow | None = await problem_queries.find_revision(tx, problem.published_revision_id)
            else:
                revision = await problem_queries.find_latest_revision(tx, problem.id)
            return revision, {
                file.path: file for file in await problem_queries.list_files(tx, revision.id)
            } if revision else {}

        revision, files = await self.database.read(read)
        public = public_files(problem_from_json(revision.definition)) if revision else {}
        file = files.get(public.get(file_name, ""))
        if file is None:
            raise NotFound("file", file_name)
        return PublicFile(file_name.rpartition("/")[2], file.digest, file.size_bytes)

    async def get_revision_file(self, viewer: Viewer, name: str, number: int, path: str) -> PublicFile:
        """Any file of any revision, including tests and solutions, for users who may see drafts."""
        problem = await self.find_visible(viewer, name)
        if not can_view_draft(viewer, problem):
            raise NotFound("file", path)

        async def read(tx: Tx) -> RevisionFileRow:
            revision = await problem_queries.find_revision_by_number(tx, problem.id, number)
            return await problem_queries.find_file(tx, revision.id, path)

        file = await self.database.read(read)
        return PublicFile(path.rpartition("/")[2], file.digest, file.size_bytes)

    def read_file(self, file: PublicFile) -> AsyncGenerator[bytes]:
        return self.blobs.open(file.digest)


def user_list_cache_key(user_id: str) -> str:
    """The cache key of a user's lists; ``cache.revisions.touch`` it when a submission of the user was judged."""
    return f"user:{user_id}"


def _item(row: ProblemListRow, viewer: Viewer, stats: ProblemStats) -> ListedProblem:
    return ListedProblem(
        id=row.id,
        slug=row.slug,
        title=row.title,
        tags=list(row.tags),
        difficulty=row.difficulty,
        revision=row.revision,
        version=row.version,
        updated_at=row.updated_at,
        solved=row.is_solved if viewer.user_id else None,
        tried=row.is_tried if viewer.user_id else None,
        solvers=stats.solvers,
        accepted=stats.accepted,
        judged=stats.judged,
        acceptance=stats.acceptance_rate,
    )


def _uncached(body: bytes) -> CachedValue:
    found = make_entry(body, 0.0).value
    if found is None:
        raise NotFound("page", "problems")
    return found


def _detail_key(name: str, languages: tuple[str, ...]) -> tuple[str, str]:
    return f"{name}|{','.join(languages)}", cache_revisions.problem_key(name)


def filter_own(wanted: ProblemFilter, viewer: Viewer) -> ProblemFilter:
    """Only the viewer's own problems, including drafts."""
    viewer.require(Permission.PROBLEM_WRITE)
    return replace(wanted, owner_id=viewer.id)
