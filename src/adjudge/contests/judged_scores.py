"""Scores of judge runs as micro-points: the total, the maximum, and the subtasks.

The result document lists the groups of the problem as paths (``""`` is the root, ``secret/1`` a group of ``secret``).
The subtasks are the groups that the total is the sum of: going down from the root, a single group that has groups of
its own is replaced by them, and the samples are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from adjudge.domain.contest import to_micro_points
from adjudge.store.contests.scoreboard import JudgedTarget

_SAMPLE: Final = "sample"


def scores_of(target: JudgedTarget) -> tuple[int | None, int | None, dict[str, int]]:
    """Score, maximum and subtasks in micro-points."""
    score = target.score if target.document_score is None else target.document_score
    return (
        None if score is None else to_micro_points(score),
        None if target.max_score is None else to_micro_points(target.max_score),
        find_subtasks(target.groups or ()),
    )


def score_columns(target: JudgedTarget) -> tuple[str, int | None, int | None, str | None]:
    """Submission, score, maximum and subtasks (as JSON), for ``contest_submissions``."""
    score_micro, max_score_micro, subtasks = scores_of(target)
    document = json.dumps(subtasks, sort_keys=True) if subtasks else None
    return target.submission_id, score_micro, max_score_micro, document


def find_subtasks(groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The scores of the subtasks in micro-points, by path; empty if the problem has none."""
    scores = {group["path"]: group["score"] for group in groups}
    level = _children(scores, "")
    while len(level) == 1 and (below := _children(scores, level[0])):
        level = below
    return {path: to_micro_points(scores[path] or 0) for path in level} if len(level) > 1 else {}


def _children(scores: Mapping[str, Any], parent: str) -> list[str]:
    prefix = f"{parent}/" if parent else ""
    return sorted(
        path
        for path in scores
        if path and path != _SAMPLE and path.startswith(prefix) and "/" not in path.removeprefix(prefix)
    )
