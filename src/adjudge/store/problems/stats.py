"""Statistics of problems: judged and accepted submissions, solvers, and the status of a user.

Counted from the submissions on request: with a stored counter, all verdicts of a popular problem would wait for one
row. Callers cache the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.store.contests.hidden import shown
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class ProblemStats:
    """Statistics of one problem. Pending and canceled submissions and system errors are not counted."""

    accepted: int = 0
    solvers: int = 0
    """The number of users who have solved it."""
    judged: int = 0

    @property
    def acceptance_rate(self) -> float | None:
        """The share of judged submissions that were accepted; None if there are none."""
        return self.accepted / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class UserProblemStatus:
    """Whether a user has solved or attempted a problem; at most one of the two."""

    is_solved: bool = False
    is_tried: bool = False
    """Whether the user has judged submissions, but no accepted one."""


COUNT_BY_PROBLEM = Statement(
    "problems.count_by_problem",
    "Count judged and accepted submissions and solvers of every problem.",
    f"""
    SELECT problem_id, sum(judged) AS judged, sum(accepted) AS accepted,
           sum(CASE WHEN accepted > 0 THEN 1 ELSE 0 END) AS solvers
    FROM (SELECT user_id, problem_id, count(*) AS judged, sum(CASE WHEN verdict = 'AC' THEN 1 ELSE 0 END) AS accepted
          FROM submissions WHERE verdict IS NOT NULL AND verdict <> 'SE' AND {shown("contest_id")}
          GROUP BY user_id, problem_id) AS people
    GROUP BY problem_id
    """,
)

SELECT_USER_STATUS = Statement(
    "problems.select_user_status",
    "Read whether a user has solved or attempted a problem.",
    f"""
    SELECT EXISTS (SELECT 1 FROM submissions
                   WHERE user_id = :user_id AND problem_id = :problem_id AND verdict = 'AC'
                     AND {shown("contest_id")}) AS is_solved,
           EXISTS (SELECT 1 FROM submissions
                   WHERE user_id = :user_id AND problem_id = :problem_id AND verdict IS NOT NULL
                     AND {shown("contest_id")}) AS is_judged
    """,
)


async def count_by_problem(tx: Tx, *, hidden_contests: str = "") -> dict[str, ProblemStats]:
    """Statistics by problem id; problems without judged submissions are left out."""
    rows = await tx.fetch(COUNT_BY_PROBLEM, hidden_contests=hidden_contests)
    return {
        row["problem_id"]: ProblemStats(int(row["accepted"]), int(row["solvers"]), int(row["judged"])) for row in rows
    }


async def find_user_status(tx: Tx, *, user_id: str, problem_id: str, hidden_contests: str = "") -> UserProblemStatus:
    (row,) = await tx.fetch(SELECT_USER_STATUS, user_id=user_id, problem_id=problem_id, hidden_contests=hidden_contests)
    return UserProblemStatus(bool(row["is_solved"]), bool(row["is_judged"]) and not row["is_solved"])
