"""Problems in a contest: the statement and the files of the pinned revision, for those who may see them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from urllib.parse import quote

from adjudge.cache.entry import CachedValue
from adjudge.cache.policies import CacheEntity
from adjudge.domain.errors import NotFound
from adjudge.packages.problem_json import problem_from_json
from adjudge.services.contest_access import ContestView
from adjudge.services.contests import ContestService
from adjudge.services.problem_detail import ProblemRevision, build_problem_detail, public_files
from adjudge.services.problems import ProblemService, PublicFile
from adjudge.store import Tx
from adjudge.store.contests.models import ContestProblemRow
from adjudge.store.ops import cache_revisions
from adjudge.store.problems import queries as problem_queries


@dataclass(frozen=True, slots=True)
class ContestProblemService:
    """Reads problems as contestants see them, without what hints at solutions or names other contests."""

    contests: ContestService
    problems: ProblemService

    async def find(self, view: ContestView, name: str) -> ContestProblemRow:
        """A problem by its label or slug; a hidden one is not found."""
        rows = await self.contests.list_problems(view)
        found = next((row for row in rows if name in (row.problem.label, row.slug)), None)
        if found is None:
            raise NotFound("contest_problem", name)
        return found

    async def get_statement(self, view: ContestView, row: ContestProblemRow, languages: tuple[str, ...]) -> CachedValue:
        """The statement, limits and samples of the pinned revision, encoded; cached for all viewers."""

        async def load() -> bytes | None:
            facts = await self._load(view, row)
            detail = await build_problem_detail(self.problems.blobs, facts, languages, self.problems.languages)
            title = row.title if row.problem.alias is not None else detail.title
            shown = replace(detail, title=title, tags=[], difficulty=None, authors=[], source="", state="published")
            return await asyncio.to_thread(self.problems.encode_detail, shown)

        selector = f"{view.contest.slug}/{row.problem.label}/{row.problem.revision_id}/{row.version}"
        found = await self.problems.cache.get(
            CacheEntity.PROBLEM,
            f"{selector}|{','.join(languages)}",
            load,
            revision=cache_revisions.problem_key(row.slug),
        )
        if found is None:
            raise NotFound("contest_problem", row.problem.label)
        return found

    async def get_file(self, view: ContestView, name: str, file_name: str) -> PublicFile:
        """An attachment, picture or original statement of the pinned revision."""
        facts = await self._load(view, await self.find(view, name))
        file = facts.files.get(public_files(facts.problem).get(file_name, ""))
        if file is None:
            raise NotFound("file", file_name)
        return PublicFile(file_name.rpartition("/")[2], file.digest, file.size_bytes)

    async def _load(self, view: ContestView, row: ContestProblemRow) -> ProblemRevision:
        async def read(tx: Tx) -> ProblemRevision:
            problem = await problem_queries.find(tx, row.problem.problem_id)
            if problem is None:
                raise NotFound("contest_problem", row.problem.label)
            revision = await problem_queries.find_revision(tx, row.problem.revision_id)
            files = {file.path: file for file in await problem_queries.list_files(tx, revision.id)}
            root = f"/api/v1/contests/{view.contest.slug}/problems/{quote(row.problem.label)}/files"
            return ProblemRevision(problem, revision, problem_from_json(revision.definition), files, root)

        return await self.contests.database.read(read)
