"""Judgement types of the Contest API. Its ``RE`` means *rejected*: our run-time error is ``RTE`` there."""

from __future__ import annotations

from typing import Any, Final

from adjudge.domain.verdict import Verdict

ACCEPTED: Final = "AC"
REJECTED: Final = "RE"
COMPILE_ERROR: Final = "CE"
JUDGING_ERROR: Final = "JE"

TYPES: Final = {
    Verdict.AC: ACCEPTED,
    Verdict.PA: "WA",
    Verdict.WA: "WA",
    Verdict.OLE: "OLE",
    Verdict.TLE: "TLE",
    Verdict.MLE: "MLE",
    Verdict.RE: "RTE",
    Verdict.CE: COMPILE_ERROR,
    Verdict.SE: JUDGING_ERROR,
}
_NAMES: Final = {
    ACCEPTED: "Accepted",
    REJECTED: "Rejected",
    "WA": "Wrong Answer",
    "TLE": "Time Limit Exceeded",
    "RTE": "Run-Time Error",
    COMPILE_ERROR: "Compile Error",
    "OLE": "Output Limit Exceeded",
    "MLE": "Memory Limit Exceeded",
    JUDGING_ERROR: "Judging Error",
}
VERDICTS: Final = {
    **{kind: verdict for verdict, kind in TYPES.items() if verdict is not Verdict.PA},
    REJECTED: Verdict.WA,
}
"""Our verdict of a judgement type, for consumers."""


def judgement_type(verdict: Verdict, score_micro: int | None) -> str:
    """The judgement type of a verdict. ``score_micro`` is None in pass-fail contests.

    In score contests clients ignore the score of a type that does not solve the problem, so that every result with
    points is *accepted*.
    """
    return ACCEPTED if score_micro else TYPES[verdict]


def simplified_type(kind: str, *, compile_error_penalty: bool) -> str | None:
    """What everybody may know of a judgement while the contest runs; None: that it is pending.

    A compile error is one of three only where it costs no penalty: else the scoreboard does not tell it from others.
    """
    if kind == JUDGING_ERROR:
        return None
    if kind == ACCEPTED or (kind == COMPILE_ERROR and not compile_error_penalty):
        return kind
    return REJECTED


def judgement_type_objects(*, is_pass_fail: bool, compile_error_penalty: bool) -> list[dict[str, Any]]:
    """All judgement types. Only pass-fail contests have penalties."""
    objects = []
    for kind, name in _NAMES.items():
        entry: dict[str, Any] = {"id": kind, "name": name, "solved": kind == ACCEPTED}
        if is_pass_fail:
            free = kind in (ACCEPTED, JUDGING_ERROR) or (kind == COMPILE_ERROR and not compile_error_penalty)
            entry["penalty"] = not free
        simplified = simplified_type(kind, compile_error_penalty=compile_error_penalty)
        objects.append(entry | ({"simplified_judgement_type_id": simplified} if simplified else {}))
    return objects
