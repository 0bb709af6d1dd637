"""Groups jobs and results: by kind, by fence, in lock order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from adjudge.store.jobs.models import Fence, Job, JobResult


def by_kind(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Group jobs by kind, in the lock order of the rows that they belong to."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.kind].append(job)
    return dict(sorted(groups.items(), key=_lock_rank)) if len(groups) > 1 else groups


def _lock_rank(group: tuple[str, list[Job]]) -> tuple[int, str]:
    """The position of a kind in the lock order: chains last, because finishing another kind may resume a node."""
    return (1 if group[0] == "node" else 0, group[0])


def first_by_fence(items: Sequence[JobResult]) -> tuple[dict[Fence, JobResult], list[Fence]]:
    """The first result of each fence, and the fences of further results, which are refused as late."""
    first: dict[Fence, JobResult] = {}
    late = [item.fence for item in items if first.setdefault(item.fence, item) is not item]
    return first, late


def ordered(fences: Iterable[Fence]) -> list[Fence]:
    """Sort by job, so that transactions lock the same rows in the same order."""
    return sorted(fences)
