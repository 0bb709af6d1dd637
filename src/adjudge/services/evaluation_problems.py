"""The problems that records of evaluations name: found by the rights of submitting, with the rules of a revision."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Permission
from adjudge.domain.problem import ProblemMode
from adjudge.evaluation.records import EvaluationRecord, invalid
from adjudge.judge.languages import Language
from adjudge.services.problems import can_view_draft
from adjudge.services.submit import SubmissionRules, SubmissionRulesCache
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import ProblemRow, RevisionRow


@dataclass(frozen=True, slots=True)
class EvaluationProblems:
    """Finds revisions for records.

    A viewer who may submit can name the published revision. Other revisions are for those who may see drafts.
    """

    database: Database
    rules: SubmissionRulesCache

    async def find_rules(self, viewer: Viewer, slug: str, number: int | None) -> SubmissionRules:
        """The rules of a revision; an error says what the record must change."""
        viewer.require(Permission.SUBMISSION_CREATE)

        async def read(tx: Tx) -> tuple[ProblemRow | None, RevisionRow | None]:
            problem = await problem_queries.find(tx, slug)
            if problem is None or number is None:
                return problem, None
            try:
                return problem, await problem_queries.find_revision_by_number(tx, problem.id, number)
            except NotFound:
                return problem, None

        problem, revision = await self.database.read(read)
        if problem is None or viewer.only_contest_id is not None or not _is_visible(viewer, problem):
            raise invalid("problem", f"no problem {slug!r} that you may submit to; give the slug of a published one")
        if number is None:
            if problem.published_revision_id is None:
                raise invalid("revision", f"problem {slug!r} is not published; give the number of a revision")
            return await self.rules.get_revision(problem.id, problem.published_revision_id)
        if revision is None or (revision.id != problem.published_revision_id and not can_view_draft(viewer, problem)):
            raise invalid("revision", f"problem {slug!r} has no revision {number} that you may submit to")
        return await self.rules.get_revision(problem.id, revision.id)


def _is_visible(viewer: Viewer, problem: ProblemRow) -> bool:
    return problem.published_revision_id is not None or can_view_draft(viewer, problem)


def check_program(record: EvaluationRecord, language: Language, rules: SubmissionRules) -> None:
    """Refuse what could not be submitted."""
    if rules.problem.mode is ProblemMode.SUBMIT_ANSWER:
        raise invalid("problem", f"{record.problem!r} takes output files, not programs; submit them instead")
    rules.check_language(language, "language")
    rules.check_size(record.source.size_bytes, "source")
