"""Statistics of a contest: counts per problem and per language, and submissions over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class CountedSubmission:
    """A submission as statistics see it."""

    participant_id: str
    problem_id: str
    language: str
    time_us: int
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class LanguageCounts:
    """What was submitted in one language."""

    submissions: int
    accepted: int
    participants: int


@dataclass(frozen=True, slots=True)
class TimelineBucket:
    """The submissions of one stretch of contest time, ``[from_us, from_us + width)``."""

    from_us: int
    submissions: int
    accepted: int


@dataclass(frozen=True, slots=True)
class ProblemCounts:
    """What happened on one problem."""

    submissions: int
    pending: int
    participants: int
    """Participants who submitted."""
    solved: int
    """Participants who solved it."""
    first_solved_us: int | None
    verdicts: Mapping[Verdict, int]
    languages: Mapping[str, LanguageCounts]
    timeline: tuple[TimelineBucket, ...]


@dataclass(frozen=True, slots=True)
class ContestStatistics:
    """All statistics."""

    problems: Mapping[str, ProblemCounts]
    languages: Mapping[str, LanguageCounts]
    timeline: tuple[TimelineBucket, ...]


def compute_statistics(
    submissions: Iterable[CountedSubmission], problem_ids: Iterable[str], *, duration_us: int, bucket_us: int
) -> ContestStatistics:
    """Aggregate submissions; problems and buckets without any are included with zeros."""
    if bucket_us <= 0:
        raise InvalidInput("bucket_us: must be positive.", field="bucket_us")
    items = list(submissions)
    end_us = max([duration_us, *(item.time_us + 1 for item in items)])
    count = -(-end_us // bucket_us)
    by_problem: dict[str, list[CountedSubmission]] = {name: [] for name in problem_ids}
    for item in items:
        if item.problem_id in by_problem:
            by_problem[item.problem_id].append(item)
    return ContestStatistics(
        {name: _problem_counts(own, count, bucket_us) for name, own in by_problem.items()},
        _languages(items),
        _timeline(items, count, bucket_us),
    )


def _problem_counts(items: list[CountedSubmission], buckets: int, bucket_us: int) -> ProblemCounts:
    accepted = [item for item in items if item.verdict is Verdict.AC]
    return ProblemCounts(
        submissions=len(items),
        pending=sum(item.verdict is None for item in items),
        participants=len({item.participant_id for item in items}),
        solved=len({item.participant_id for item in accepted}),
        first_solved_us=min((item.time_us for item in accepted), default=None),
        verdicts=Counter(item.verdict for item in items if item.verdict is not None),
        languages=_languages(items),
        timeline=_timeline(items, buckets, bucket_us),
    )


def _languages(items: list[CountedSubmission]) -> dict[str, LanguageCounts]:
    by_language: dict[str, list[CountedSubmission]] = defaultdict(list)
    for item in items:
        by_language[item.language].append(item)
    return {name: _language_counts(own) for name, own in sorted(by_language.items())}


def _language_counts(items: list[CountedSubmission]) -> LanguageCounts:
    return LanguageCounts(
        submissions=len(items),
        accepted=sum(item.verdict is Verdict.AC for item in items),
        participants=len({item.participant_id for item in items}),
    )


def _timeline(items: list[CountedSubmission], buckets: int, bucket_us: int) -> tuple[TimelineBucket, ...]:
    """Count by buckets up to the end, or up to the last submission if extra time made it later."""
    submitted = Counter(item.time_us // bucket_us for item in items)
    accepted = Counter(item.time_us // bucket_us for item in items if item.verdict is Verdict.AC)
    return tuple(TimelineBucket(index * bucket_us, submitted[index], accepted[index]) for index in range(buckets))
