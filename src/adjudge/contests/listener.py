"""Connects submissions to contests: numbers, ``contest_submissions`` and the scoreboard, in the same transaction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from adjudge.contests import scoreboard
from adjudge.contests.folding import CellKey
from adjudge.domain.errors import Conflict, RateLimited
from adjudge.store import Tx
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import NewContestSubmission
from adjudge.store.judging.models import NewSubmission


class ContestListener:
    """Implements ``SubmissionListener`` for submissions of participants."""

    async def created(self, tx: Tx, submissions: Sequence[NewSubmission]) -> None:
        """Number the submissions of participants and refold their cells, where they are pending."""
        found = [
            NewContestSubmission(item.id, item.contest_id, item.participant_id, item.problem_id)
            for item in submissions
            if item.contest_id is not None and item.participant_id is not None
        ]
        if not found:
            return
        cells: defaultdict[str, set[CellKey]] = defaultdict(set)
        for item in found:
            cells[item.contest_id].add((item.participant_id, item.problem_id))
        await scoreboard_store.lock_shared(tx, cells)
        counters = await contest_submissions.take_numbers(tx, Counter(item.contest_id for item in found))
        await contest_submissions.insert(tx, found, counters)
        await _check_limits(tx, found)
        await scoreboard.refold_cells(tx, cells)

    async def changed(self, tx: Tx, submission_ids: Sequence[str]) -> None:
        """Refold the cells of submissions whose verdict or status changed."""
        await scoreboard.update_submissions(tx, submission_ids)


async def _check_limits(tx: Tx, new: Sequence[NewContestSubmission]) -> None:
    """Raise if a participant has more submissions than the contest allows, the new ones included.

    The counter of the contest is locked, so no other request adds submissions at the same time.
    """
    cells = sorted({(item.contest_id, item.participant_id, item.problem_id) for item in new})
    for found in await contest_submissions.counts(tx, cells):
        if found.per_problem is not None and found.to_problem > found.per_problem:
            raise Conflict(f"Problem {found.label}: at most {found.per_problem} submissions are allowed.")
        if found.per_minute is not None and found.last_minute > found.per_minute:
            raise RateLimited(f"At most {found.per_minute} submissions per minute are allowed in this contest.")


CONTEST_LISTENER: Final = ContestListener()
