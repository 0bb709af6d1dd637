"""The expected verdict of each submission."""

from __future__ import annotations

from adjudge.domain.verdict import Verdict

VERDICTS = (Verdict.AC, Verdict.WA, Verdict.TLE, Verdict.RE, Verdict.CE)


def oracle(submission_id: str) -> Verdict:
    """What every judge must say of a submission."""
    return VERDICTS[int(submission_id[:8]) % len(VERDICTS)]


def is_poison(submission_id: str) -> bool:
    """Some submissions break whatever judges them, every time: they must end in the dead letters."""
    return int(submission_id[:8]) % 11 == 3
