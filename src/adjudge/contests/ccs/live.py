"""Objects that are made during the contest: its state, submissions, judgements, runs, clarifications, awards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adjudge.contests.awards import Award
from adjudge.contests.ccs.configuration import file_reference, without_nulls
from adjudge.contests.ccs.ids import award_id, run_id
from adjudge.contests.ccs.snapshot import ContestSnapshot, SubmissionsSnapshot, VerdictLevel
from adjudge.contests.ccs.times import format_reltime, format_time
from adjudge.contests.ccs.verdicts import TYPES, judgement_type, simplified_type
from adjudge.contests.ccs.version import Object
from adjudge.contests.exports import StateTimes, points_number
from adjudge.contests.formats.base import ProblemScoring
from adjudge.domain.contest import to_micro_points
from adjudge.domain.problem import Feedback, Problem
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.activity_models import ClarificationRow
from adjudge.store.contests.ccs import CcsCaseRow, CcsJudgeRunRow, CcsSubmissionRow

_STATES = ("started", "frozen", "ended", "thawed", "finalized", "end_of_updates")
_AWARDS = ("first-to-solve-", "group-winner-", "organization-winner-")


def state_object(state: StateTimes) -> Object:
    """When the contest entered each state; null if it has not."""
    times = {name: getattr(state, name) for name in _STATES}
    return {name: None if at is None else format_time(at) for name, at in times.items()}


def submissions(found: SubmissionsSnapshot) -> list[Object]:
    """The submissions, in number order; only their readers see language and files of them."""
    return [submission_object(found, row) for row in found.rows]


def submission_object(found: SubmissionsSnapshot, row: CcsSubmissionRow) -> Object:
    """One submission."""
    snapshot, audience = found.snapshot, found.snapshot.audience
    is_known = audience.sees_all or row.participant_id in audience.own
    is_open = is_known or audience.shows_details
    href = f"contests/{snapshot.contest.slug}/submissions/{row.number}/files"
    return without_nulls(
        {
            "id": str(row.number),
            "language_id": (row.language or None) if is_open else None,
            "problem_id": snapshot.labels.get(row.problem_id),
            "team_id": snapshot.participants[row.participant_id].code,
            "account_id": _account_id(snapshot, row) if is_known else None,
            "time": format_time(row.received_at),
            "contest_time": format_reltime(snapshot.participant_time_us(row.participant_id, row.received_at)),
            "files": [file_reference(href, "files.zip", "application/zip")] if is_open else None,
        }
    )


def _account_id(snapshot: ContestSnapshot, row: CcsSubmissionRow) -> str | None:
    """Who submitted, if the reader sees the account."""
    return row.user_id if snapshot.audience.sees_all or row.user_id == snapshot.audience.user_id else None


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A verdict that counts, or counted."""

    verdict: Verdict
    score_micro: int
    max_score_micro: int | None

    def points_micro(self, snapshot: ContestSnapshot, problem_id: str) -> int | None:
        """What it is worth; None in pass-fail contests."""
        if snapshot.is_pass_fail:
            return None
        scoring = ProblemScoring(snapshot.points_micro.get(problem_id, 0), self.max_score_micro)
        return scoring.scaled(self.score_micro, self.verdict)


def _counting(snapshot: ContestSnapshot, row: CcsSubmissionRow) -> _Verdict | None:
    """The verdict that counts, as ``contests.folding`` decides it; None while there is none."""
    if row.override_verdict is not None:
        full = (row.max_score_micro or 0) if row.override_verdict is Verdict.AC else 0
        score = full if row.override_score_micro is None else row.override_score_micro
        return _Verdict(row.override_verdict, score, row.max_score_micro)
    is_waiting = snapshot.contest.settings.verify_required and row.verified_at is None
    if row.verdict is None or is_waiting:
        return None
    return _Verdict(row.verdict, row.score_micro or 0, row.max_score_micro)


def judgements(found: SubmissionsSnapshot) -> list[Object]:
    """The judgements, as far as the reader sees them; a submission without one is pending."""
    return [item for row in found.rows for item in _judgements_of(found, row)]


def _judgements_of(found: SubmissionsSnapshot, row: CcsSubmissionRow) -> list[Object]:
    level, runs = found.level(row), found.runs_of.get(row.submission_id, [])
    if level is VerdictLevel.NONE or not runs:
        return []
    run = _current(row, runs)
    verdict = _counting(found.snapshot, row)
    if verdict is None:
        is_shown = level is VerdictLevel.JURY and run.started_at is not None
        return [_running(found.snapshot, row, run)] if is_shown else []
    finished = _finished(found, row, run, verdict, level)
    if finished is None:
        return []
    earlier = [item for item in runs if item.id != run.id and item.id in found.results]
    old = [_superseded(found, row, item) for item in earlier] if level is VerdictLevel.JURY else []
    return [*old, finished]


def _current(row: CcsSubmissionRow, runs: Sequence[CcsJudgeRunRow]) -> CcsJudgeRunRow:
    return next((item for item in runs if item.id == row.judged_by_job_id), runs[-1])


def _running(snapshot: ContestSnapshot, row: CcsSubmissionRow, run: CcsJudgeRunRow) -> Object:
    started = run.started_at or row.received_at
    return {
        "id": run.id,
        "submission_id": str(row.number),
        "current": True,
        "start_time": format_time(started),
        "start_contest_time": format_reltime(snapshot.contest_time_us(started)),
    } | ({} if snapshot.is_pass_fail else {"score": 0})


def _finished(
    found: SubmissionsSnapshot, row: CcsSubmissionRow, run: CcsJudgeRunRow, verdict: _Verdict, level: VerdictLevel
) -> Object | None:
    snapshot = found.snapshot
    points = verdict.points_micro(snapshot, row.problem_id)
    kind = judgement_type(verdict.verdict, points)
    simplified = simplified_type(kind, compile_error_penalty=snapshot.icpc.compile_error_penalty)
    if level is VerdictLevel.SIMPLIFIED:
        if simplified is None:
            return None
        kind = simplified
    shows_times = level >= VerdictLevel.DETAILS
    started = run.started_at if shows_times else None
    ended = (row.overridden_at or run.finished_at or row.finished_at) if shows_times else None
    has_time = shows_times and row.time_ms is not None and row.override_verdict is None
    return {
        **_judgement(snapshot, row, run, kind, started=started or row.received_at, ended=ended or row.received_at),
        "current": True,
        **({"simplified_judgement_type_id": simplified} if simplified else {}),
        **({} if points is None else {"score": points_number(points)}),
        **({"max_run_time": (row.time_ms or 0) / 1000} if has_time else {}),
    }


def _superseded(found: SubmissionsSnapshot, row: CcsSubmissionRow, run: CcsJudgeRunRow) -> Object:
    """A judgement that counted before a rejudge, for the jury."""
    document, snapshot = found.results[run.id], found.snapshot
    maximum = document.get("max_score")
    verdict = _Verdict(
        Verdict(document["verdict"]),
        to_micro_points(document.get("score") or 0),
        None if maximum is None else to_micro_points(maximum),
    )
    points = verdict.points_micro(snapshot, row.problem_id)
    kind = judgement_type(verdict.verdict, points)
    started, ended = run.started_at or row.received_at, run.finished_at or row.received_at
    return {
        **_judgement(snapshot, row, run, kind, started=started, ended=ended),
        "current": False,
        **({} if points is None else {"score": points_number(points)}),
    }


def _judgement(
    snapshot: ContestSnapshot, row: CcsSubmissionRow, run: CcsJudgeRunRow, kind: str, *, started: int, ended: int
) -> Object:
    return {
        "id": run.id,
        "submission_id": str(row.number),
        "judgement_type_id": kind,
        "start_time": format_time(started),
        "start_contest_time": format_reltime(snapshot.contest_time_us(started)),
        "end_time": format_time(ended),
        "end_contest_time": format_reltime(snapshot.contest_time_us(ended)),
    }


def runs(found: SubmissionsSnapshot) -> list[Object]:
    """The tests of the judgements that count: all for the jury, else those that the problem shows."""
    by_job: dict[str, list[CcsCaseRow]] = {}
    for case in found.cases:
        by_job.setdefault(case.job_id, []).append(case)
    objects = []
    for row, run in runs_with_tests(found):
        ended = run.finished_at or row.received_at
        problem = found.snapshot.problem_definitions.get(row.problem_id)
        cases = by_job.get(run.id, [])
        if found.level(row) is not VerdictLevel.JURY:
            cases = _shown_cases(problem, cases)
        ordinals = {case.name: index for index, case in enumerate(problem.cases if problem else (), 1)}
        objects += [_run(found.snapshot, case, ordinals.get(case.name, case.ordinal), ended) for case in cases]
    return objects


def runs_with_tests(found: SubmissionsSnapshot) -> list[tuple[CcsSubmissionRow, CcsJudgeRunRow]]:
    """The judge runs whose tests the reader may see, with their submissions."""
    pairs = []
    for row in found.rows:
        judge_runs = found.runs_of.get(row.submission_id, [])
        is_shown = found.level(row) >= VerdictLevel.DETAILS and row.override_verdict is None
        if is_shown and judge_runs and _counting(found.snapshot, row) is not None:
            pairs.append((row, _current(row, judge_runs)))
    return pairs


def _shown_cases(problem: Problem | None, cases: Iterable[CcsCaseRow]) -> list[CcsCaseRow]:
    """The tests that authors see: none where a group hides them, and up to its first failure where it says so."""
    if problem is None:
        return []
    known = {case.name: case for case in problem.cases}
    shown, failed = [], set[str]()
    for row in cases:
        case = known.get(row.name)
        feedback = Feedback.NONE.value if case is None else problem.feedback_of(case)
        if case is None or feedback in (Feedback.NONE.value, Feedback.POINTS.value) or case.group in failed:
            continue
        if feedback == Feedback.FIRST_FAILURE.value and row.verdict is not Verdict.AC:
            failed.add(case.group)
        shown.append(row)
    return shown


def _run(snapshot: ContestSnapshot, case: CcsCaseRow, ordinal: int, ended: int) -> Object:
    return {
        "id": run_id(case.job_id, ordinal),
        "judgement_id": case.job_id,
        "ordinal": ordinal,
        "judgement_type_id": TYPES[case.verdict],
        "time": format_time(ended),
        "contest_time": format_reltime(snapshot.contest_time_us(ended)),
        "run_time": case.time_ms / 1000,
    }


@dataclass(frozen=True, slots=True)
class VisibleClarification:
    """A clarification that the reader may see, with the groups that it is sent to."""

    row: ClarificationRow
    groups: Sequence[str] = ()
    """Codes."""


def clarifications(snapshot: ContestSnapshot, rows: Sequence[VisibleClarification]) -> list[Object]:
    """The clarifications, in number order; references to what the reader does not see are left out."""
    numbers = {item.row.id: item.row.number for item in rows}
    ordered = sorted(rows, key=lambda item: item.row.number)
    return [_clarification(snapshot, item, numbers) for item in ordered]


def _clarification(snapshot: ContestSnapshot, item: VisibleClarification, numbers: dict[str, int]) -> Object:
    row = item.row
    shown = {group.code for group in snapshot.shown_groups.values()}
    reply_to = numbers.get(row.reply_to_id or "")
    return without_nulls(
        {
            "id": str(row.number),
            "from_team_id": _code(snapshot, row.from_participant_id),
            "to_team_ids": _recipients(snapshot, row),
            "to_group_ids": [code for code in item.groups if code in shown] or None,
            "reply_to_id": None if reply_to is None else str(reply_to),
            "problem_id": snapshot.labels.get(row.problem_id or ""),
            "text": row.body,
            "time": format_time(row.created_at),
            "contest_time": format_reltime(snapshot.contest_time_us(row.created_at)),
        }
    )


def _recipients(snapshot: ContestSnapshot, row: ClarificationRow) -> list[str] | None:
    """The recipients; of a message to groups those that the reader is one of."""
    if row.audience == "participant":
        return [code] if (code := _code(snapshot, row.to_participant_id)) else None
    if row.audience == "groups" and not snapshot.audience.sees_all:
        return [snapshot.participants[item].code for item in snapshot.audience.own if item in snapshot.participants]
    return None


def _code(snapshot: ContestSnapshot, participant_id: str | None) -> str | None:
    found = snapshot.participants.get(participant_id or "")
    return None if found is None else found.code


def awards(snapshot: ContestSnapshot, found: Iterable[Award]) -> list[Object]:
    """The awards of the teams that the reader may know of."""
    known = {
        **snapshot.labels,
        **{item.id: item.code for item in snapshot.shown_groups.values()},
        **{item.id: item.code for item in snapshot.organizations.values()},
        **{item.id: item.code for item in snapshot.participants.values()},
    }
    return award_objects(found, known)


def award_objects(found: Iterable[Award], known: Mapping[str, str]) -> list[Object]:
    """Awards; ``known`` are the ids of the Contest API by ours. Unknown teams are left out."""
    return [
        {
            "id": _award_id(item.id, known),
            "citation": item.citation,
            "team_ids": [known[member] for member in item.participant_ids if member in known],
        }
        for item in found
    ]


def _award_id(text: str, known: Mapping[str, str]) -> str:
    prefix = next((prefix for prefix in _AWARDS if text.startswith(prefix)), "")
    object_id = text.removeprefix(prefix)
    return award_id(prefix, known.get(object_id, object_id))
