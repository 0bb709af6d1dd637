"""What became of a revision's tests, over the latest submissions that were judged on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

SUBMISSIONS_MOST: Final = 1_000
"""How many submissions are looked at: enough for figures, and few enough for one request."""

OF_REVISION = Statement(
    "case_results.of_revision",
    "Count the verdicts of each test over the latest submissions to a revision, with the largest time and memory.",
    """
    WITH recent AS (
        SELECT judged_by_job_id AS job_id FROM submissions
        WHERE problem_id = :problem_id AND revision_id = :revision_id AND verdict IS NOT NULL
        ORDER BY id DESC LIMIT :limit)
    SELECT name, verdict, min(ordinal) AS place, count(*) AS runs, max(time_ms) AS time_ms, max(mem_kb) AS mem_kb
    FROM recent JOIN case_results ON case_results.job_id = recent.job_id
    GROUP BY name, verdict ORDER BY min(ordinal), name, verdict
    """,
)


@dataclass(slots=True)
class TestFigures:
    """One test."""

    name: str
    place: int
    verdicts: dict[str, int] = field(default_factory=dict)
    """How often each verdict was given."""
    time_ms: int = 0
    mem_kb: int = 0

    @property
    def runs(self) -> int:
        """How often it was run."""
        return sum(self.verdicts.values())


async def of_revision(tx: Tx, *, problem_id: str, revision_id: str) -> list[TestFigures]:
    """The tests that have been run, in the order in which they are."""
    found: dict[str, TestFigures] = {}
    rows = await tx.fetch(OF_REVISION, problem_id=problem_id, revision_id=revision_id, limit=SUBMISSIONS_MOST)
    for row in rows:
        figures = found.setdefault(row["name"], TestFigures(row["name"], row["place"]))
        figures.place = min(figures.place, row["place"])
        figures.verdicts[row["verdict"]] = row["runs"]
        figures.time_ms = max(figures.time_ms, row["time_ms"])
        figures.mem_kb = max(figures.mem_kb, row["mem_kb"])
    return sorted(found.values(), key=lambda figures: figures.place)
