"""Sorting jobs and what claims say of them: by kind, by fence, in the order in which rows are locked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from adjudge.store.jobs.models import Fence, Job, JobResult


def by_kind(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Jobs of several kinds apart, in the lock order of what they belong to."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.kind].append(job)
    return dict(sorted(groups.items(), key=_lock_rank)) if len(groups) > 1 else groups


def _lock_rank(group: tuple[str, list[Job]]) -> tuple[int, str]:
    """Where a kind's rows stand in the lock order: chains last, because an end of another kind may wake a node."""
    return (1 if group[0] == "node" else 0, group[0])


def first_by_fence(items: Sequence[JobResult]) -> tuple[dict[Fence, JobResult], list[Fence]]:
    """What each claim says, and the claims that said something twice: the first word stands, a second is late."""
    first: dict[Fence, JobResult] = {}
    late = [item.fence for item in items if first.setdefault(item.fence, item) is not item]
    return first, late


def ordered(fences: Iterable[Fence]) -> list[Fence]:
    """By job, so that transactions that want the same rows take them in the same order."""
    return sorted(fences)
