"""Statistics of a contest."""

from __future__ import annotations

import pytest

from adjudge.contests.statistics import CountedSubmission, LanguageCounts, TimelineBucket, compute_statistics
from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict

AC, WA = Verdict.AC, Verdict.WA
SUBMISSIONS = [
    CountedSubmission("a", "p1", "cpp", 5, WA),
    CountedSubmission("a", "p1", "cpp", 12, AC),
    CountedSubmission("a", "p1", "cpp", 14, AC),
    CountedSubmission("b", "p1", "python", 19, AC),
    CountedSubmission("b", "p2", "cpp", 31, None),
]


def test_counts_per_problem() -> None:
    problems = compute_statistics(SUBMISSIONS, ["p1", "p2", "p3"], duration_us=30, bucket_us=10).problems
    p1 = problems["p1"]
    assert (p1.submissions, p1.pending, p1.participants, p1.solved, p1.first_solved_us) == (4, 0, 2, 2, 12)
    assert p1.verdicts == {AC: 3, WA: 1}
    p2 = problems["p2"]
    assert (p2.submissions, p2.pending, p2.participants, p2.solved, p2.first_solved_us) == (1, 1, 1, 0, None)
    assert problems["p3"].submissions == 0


def test_counts_per_language() -> None:
    languages = compute_statistics(SUBMISSIONS, ["p1"], duration_us=30, bucket_us=10).languages
    assert languages == {"cpp": LanguageCounts(4, 2, 2), "python": LanguageCounts(1, 1, 1)}


def test_timeline_has_empty_buckets_and_extends_to_late_submissions() -> None:
    timeline = compute_statistics(SUBMISSIONS, [], duration_us=30, bucket_us=10).timeline
    assert timeline == (
        TimelineBucket(0, 1, 0),
        TimelineBucket(10, 3, 3),
        TimelineBucket(20, 0, 0),
        TimelineBucket(30, 1, 0),
    )
    at_the_end = [CountedSubmission("a", "p1", "cpp", 30, AC)]
    assert compute_statistics(at_the_end, [], duration_us=30, bucket_us=10).timeline[-1] == TimelineBucket(30, 1, 1)
    assert len(compute_statistics([], [], duration_us=31, bucket_us=10).timeline) == 4


def test_bucket_width_must_be_positive() -> None:
    with pytest.raises(InvalidInput, match="bucket_us"):
        compute_statistics([], [], duration_us=1, bucket_us=0)
