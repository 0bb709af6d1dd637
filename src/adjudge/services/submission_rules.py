"""What a problem requires of a submission: allowed languages, source size, and the time limit of judging.

Revisions never change, so their rules are cached; which revision is published is read every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.problem import Problem, ProblemMode
from adjudge.judge.languages import Language
from adjudge.judge.pipeline import submission_limits
from adjudge.packages.problem_json import problem_from_json
from adjudge.store import Database
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.models import ProblemRef

_MAX_REVISIONS: Final = 256
_MARGIN_MS: Final = 60_000
_REPEATS: Final = 2
"""A run near its limit is repeated once."""


@dataclass(frozen=True, slots=True)
class SubmissionRules:
    """The rules of one revision."""

    problem_id: str
    revision_id: str
    problem: Problem
    deadlines_ms: dict[str, int] = field(default_factory=dict)
    """Cache of deadlines, by language."""

    def check_language(self, language: Language, field: str) -> None:
        """Reject a language that the problem does not allow."""
        allowed = self.problem.languages
        if self.problem.mode is ProblemMode.SUBMIT_ANSWER or not allowed:
            return
        if language.id not in allowed and language.code not in allowed:
            raise InvalidInput(
                f"{field}: {language.name} is not allowed for this problem; allowed: {', '.join(allowed)}.", field=field
            )

    def check_size(self, source_bytes: int, field: str) -> None:
        """Reject a source that is too long."""
        most = self.problem.limits.code_bytes
        if source_bytes > most:
            raise InvalidInput(f"{field}: {source_bytes} bytes exceed the limit of {most}.", field=field)

    def deadline_ms(self, language: Language) -> int:
        """The time limit of judging: the sum of all limits and a margin."""
        known = self.deadlines_ms.get(language.id)
        if known is None:
            known = self.deadlines_ms[language.id] = self._deadline_ms(language)
        return known

    def _deadline_ms(self, language: Language) -> int:
        limits = self.problem.limits
        test_ms = submission_limits(self.problem, language).wall_ms * _REPEATS + limits.validation_ms
        runs = max(1, len(self.problem.cases)) * self.problem.max_passes
        return 2 * limits.compile_ms + runs * test_ms + _MARGIN_MS


class SubmissionRulesCache:
    """The rules of problems, cached by revision."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._refs: Batcher[str, ProblemRef | None] = Batcher(self._resolve, name="problem-refs", key=lambda ref: ref)
        self._by_revision: LRUCache[str, SubmissionRules] = LRUCache(_MAX_REVISIONS)

    async def find_problem(self, ref: str) -> ProblemRef | None:
        return await self._refs.put(ref)

    async def get(self, ref: str) -> SubmissionRules:
        """The rules of the published revision of a problem."""
        found = await self.find_problem(ref)
        if found is None or found.published_revision_id is None:
            raise NotFound("problem", ref)
        revision_id = found.published_revision_id
        rules = self._by_revision.get(revision_id)
        if rules is None:
            document = await self._database.read(lambda tx: submission_queries.find_definition(tx, revision_id))
            rules = SubmissionRules(found.id, revision_id, problem_from_json(document))
            self._by_revision[revision_id] = rules
        return rules

    async def _resolve(self, refs: Sequence[str]) -> list[ProblemRef | None]:
        found = await self._database.read(lambda tx: submission_queries.resolve_problems(tx, refs))
        return [found.get(ref) for ref in refs]
