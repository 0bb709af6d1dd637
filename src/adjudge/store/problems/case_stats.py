"""Statistics of the test cases of a revision, over its latest judged submissions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from adjudge.store.contests.hidden import join_ids, shown
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

MAX_SUBMISSIONS: Final = 1_000
"""The number of submissions that are counted: enough for statistics, few enough for one request."""


@dataclass(slots=True)
class CaseStats:
    """Statistics of one test case."""

    name: str
    position: int
    verdicts: dict[str, int] = field(default_factory=dict)
    """The number of runs by verdict."""
    time_ms: int = 0
    mem_kb: int = 0

    @property
    def runs(self) -> int:
        return sum(self.verdicts.values())


OF_REVISION = Statement(
    "case_results.of_revision",
    "Count the verdicts of each test over the latest submissions to a revision, without those of hidden contests.",
    f"""
    WITH recent AS (
        SELECT judged_by_job_id AS job_id FROM submissions
        WHERE problem_id = :problem_id AND revision_id = :revision_id AND verdict IS NOT NULL AND {shown("contest_id")}
        ORDER BY id DESC LIMIT :limit)
    SELECT name, verdict, min(ordinal) AS position, count(*) AS runs, max(time_ms) AS time_ms, max(mem_kb) AS mem_kb
    FROM recent JOIN case_results ON case_results.job_id = recent.job_id
    GROUP BY name, verdict ORDER BY min(ordinal), name, verdict
    """,
)


async def of_revision(
    tx: Tx, *, problem_id: str, revision_id: str, hidden_contests: Iterable[str] = ()
) -> list[CaseStats]:
    """The test cases that have run, in their order, without runs of hidden contests."""
    found: dict[str, CaseStats] = {}
    rows = await tx.fetch(
        OF_REVISION,
        problem_id=problem_id,
        revision_id=revision_id,
        limit=MAX_SUBMISSIONS,
        hidden_contests=join_ids(hidden_contests),
    )
    for row in rows:
        stats = found.setdefault(row["name"], CaseStats(row["name"], row["position"]))
        stats.position = min(stats.position, row["position"])
        stats.verdicts[row["verdict"]] = row["runs"]
        stats.time_ms = max(stats.time_ms, row["time_ms"])
        stats.mem_kb = max(stats.mem_kb, row["mem_kb"])
    return sorted(found.values(), key=lambda stats: stats.position)
