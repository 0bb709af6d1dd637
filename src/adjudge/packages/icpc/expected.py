"""``submissions.yaml`` as it is written: what a submission's folder does not say already."""

from __future__ import annotations

from typing import Any

from adjudge.domain.problem import ANY_VERDICT, Expectation, JurySubmission, Problem, TimeBound
from adjudge.domain.verdict import Verdict
from adjudge.packages.icpc.expectations import DEFAULTS, ICPC_VERDICTS

_BOUNDS: dict[TimeBound, Any] = {TimeBound.NEITHER: False, TimeBound.LOWER: "lower", TimeBound.UPPER: "upper"}


def submissions_yaml(problem: Problem) -> dict[str, Any]:
    """Return the rules for every submission that its folder does not say enough about."""
    found: dict[str, Any] = {}
    for submission in problem.submissions:
        found |= _rules(submission)
    return found


def _rules(submission: JurySubmission) -> dict[str, Any]:
    rest = list(submission.expectations)
    folder = submission.path.partition("/")[0]
    if folder in DEFAULTS and rest and rest[0] == DEFAULTS[folder]:
        rest.pop(0)
    about: dict[str, Any] = {}
    if submission.program.language:
        about["language"] = submission.program.language
    if submission.program.entry_point:
        about["entrypoint"] = submission.program.entry_point
    if submission.authors:
        about["authors"] = list(submission.authors)
    if submission.is_model:
        about["model_solution"] = True
    whole = [item for item in rest if not item.cases]
    if whole:
        about |= _keys(whole[0])
    for item in rest:
        if item.cases:
            about[item.cases] = _keys(item)
    found = {submission.path: about} if about else {}
    for number, item in enumerate(whole[1:], 1):
        found["{" * number + submission.path + "}" * number] = _keys(item)
    return found


def _keys(item: Expectation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if item.permitted != ANY_VERDICT:
        found["permitted"] = _names(item.permitted)
    if item.required != ANY_VERDICT:
        found["required"] = _names(item.required)
    if item.score is not None:
        found["score"] = list(item.score)
    if item.message:
        found["message"] = item.message
    if item.time_bound in _BOUNDS:
        found["use_for_time_limit"] = _BOUNDS[item.time_bound]
    return found


def _names(verdicts: frozenset[Verdict]) -> list[str]:
    return [name for name, members in ICPC_VERDICTS.items() if members & verdicts]
