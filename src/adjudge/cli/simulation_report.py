"""The result of a simulated contest: what the server returned, checked against what was submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from adjudge.cli.contest_scoreboard import scoreboard_table
from adjudge.cli.output import make_console
from adjudge.cli.simulation_run import SimulationOptions, SimulationProgress
from adjudge.contests.simulation_results import VerdictInContest, count_cells, fingerprint, planned_rows
from adjudge.domain.timestamps import parse_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.schema.scoreboard import ScoreboardRead

_SHOWN: Final = 10
_SHOWN_ERRORS: Final = 20


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """The result of a simulation."""

    contest: str
    teams: int
    planned: int
    accepted: int
    unjudged: int
    """Accepted submissions without a verdict."""
    missing: int
    """Accepted submissions that the server does not list."""
    duplicated: int
    """Submissions that the server lists twice, or that no team made."""
    wrong_cells: int
    """Cells of the server's scoreboard that differ from a count of the verdicts."""
    unexpected: int
    """Accepted programs of the jury with another verdict, or the reverse."""
    questions: int
    answers_read: int
    errors: dict[str, int]
    retried: dict[str, int]
    """Responses that made the client repeat a request, by HTTP status."""
    verdicts: dict[str, int]
    prepared_sec: float
    submitted_sec: float
    judged_sec: float
    submitted_per_sec: float
    judged_per_sec: float
    verdict_p50_sec: float | None
    verdict_p95_sec: float | None
    scoreboard_p50_ms: float | None
    scoreboard_p95_ms: float | None
    result_hash: str
    """Hash of the scoreboard by planned times: equal for two simulations with equal plans and verdicts."""

    @property
    def problems(self) -> list[str]:
        """What was lost or is wrong; empty if the simulation succeeded."""
        found = {
            f"{self.planned - self.accepted} planned submissions were not accepted": self.planned - self.accepted,
            f"{self.unjudged} submissions have no verdict": self.unjudged,
            f"{self.missing} accepted submissions are missing on the server": self.missing,
            f"{self.duplicated} submissions on the server were made by no team": self.duplicated,
            f"{self.wrong_cells} cells of the scoreboard differ from the verdicts": self.wrong_cells,
            f"{self.verdicts.get('SE', 0)} submissions ended with a system error": self.verdicts.get("SE", 0),
            f"{self.questions - self.answers_read} questions got no answer": self.questions - self.answers_read,
        }
        return [text for text, count in found.items() if count]


def summarize(options: SimulationOptions, progress: SimulationProgress) -> SimulationSummary:
    """The summary of a simulation that ran to its end."""
    plan = options.plan
    verdicts = planned_verdicts(options, progress)
    listed = Counter(item.submission_id for item in progress.listed)
    accepted = set(progress.accepted.values())
    waits = [_seconds(item.created_at, item.finished_at) for item in progress.ended.values() if item.finished_at]
    pairs = zip(plan.submissions, verdicts, strict=True)
    retried = {str(status): count for status, count in sorted(progress.statuses.items()) if status in (429, 502, 503)}
    return SimulationSummary(
        contest=options.contest,
        teams=plan.teams,
        planned=len(plan.submissions),
        accepted=len(progress.accepted),
        unjudged=sum(index not in progress.ended for index in progress.accepted),
        missing=len(accepted - set(listed)),
        duplicated=sum(listed.values()) - len(accepted & set(listed)),
        wrong_cells=count_wrong_cells(progress),
        unexpected=sum(
            item.program.is_accepted is not (verdict is Verdict.AC) for item, verdict in pairs if verdict is not None
        ),
        questions=len(progress.asked),
        answers_read=progress.answers_read,
        errors=dict(progress.errors.most_common(_SHOWN_ERRORS)),
        retried=retried,
        verdicts=dict(sorted(Counter(str(item) for item in verdicts if item is not None).items())),
        prepared_sec=round(progress.prepared_sec, 1),
        submitted_sec=round(progress.submitted_sec, 1),
        judged_sec=round(progress.judged_sec, 1),
        submitted_per_sec=round(len(progress.accepted) / max(progress.submitted_sec, 0.001), 1),
        judged_per_sec=round(len(progress.ended) / max(progress.judged_sec, 0.001), 1),
        verdict_p50_sec=quantile(waits, 0.5),
        verdict_p95_sec=quantile(waits, 0.95),
        scoreboard_p50_ms=quantile(progress.scoreboard_ms, 0.5),
        scoreboard_p95_ms=quantile(progress.scoreboard_ms, 0.95),
        result_hash=fingerprint(planned_rows(plan, verdicts)),
    )


def planned_verdicts(options: SimulationOptions, progress: SimulationProgress) -> list[Verdict | None]:
    """The verdicts in the order of the plan."""
    ended = progress.ended
    return [ended[index].verdict if index in ended else None for index in range(len(options.plan.submissions))]


def count_wrong_cells(progress: SimulationProgress) -> int:
    """Cells of the server's scoreboard whose attempts, pending or solved differ from a count of the listed verdicts."""
    board = progress.scoreboard
    if board is None:
        return 0
    wanted = count_cells(
        VerdictInContest(item.number, item.participant_id, item.problem, item.verdict) for item in progress.listed
    )
    wrong = 0
    for row in board.rows:
        for column, cell in zip(board.problems, row.cells, strict=True):
            counted = wanted.pop((row.participant_id, column.label), None)
            shown = (cell.attempts, cell.pending, cell.is_solved)
            wrong += shown != (
                (0, 0, False) if counted is None else (counted.attempts, counted.pending, counted.is_solved)
            )
    return wrong + len(wanted)


def quantile(values: Sequence[float], part: float) -> float | None:
    """A quantile of measured values; None without any."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2) if ordered else None


def _seconds(begin: str, end: str) -> float:
    return (parse_timestamp(end, "finished_at") - parse_timestamp(begin, "created_at")) / 1_000_000


def summary_document(summary: SimulationSummary, board: ScoreboardRead | None) -> dict[str, Any]:
    """The summary as JSON, with the top rows of the scoreboard."""
    rows = [] if board is None else [asdict(row) for row in board.rows[:_SHOWN]]
    return {**asdict(summary), "problems": summary.problems, "scoreboard": rows}


def print_summary(summary: SimulationSummary, board: ScoreboardRead | None) -> None:
    """Print the summary for people."""
    console = make_console()
    console.print(
        f"Contest {summary.contest}: {summary.teams} teams, {summary.accepted} of {summary.planned} submissions "
        f"accepted, {summary.questions} questions, {summary.answers_read} answers read."
    )
    console.print(
        f"Prepared in {summary.prepared_sec} s; submitted in {summary.submitted_sec} s "
        f"({summary.submitted_per_sec}/s), judged in {summary.judged_sec} s ({summary.judged_per_sec}/s)."
    )
    console.print(f"Time to verdict: p50 {summary.verdict_p50_sec} s, p95 {summary.verdict_p95_sec} s.")
    console.print(f"Reading the scoreboard: p50 {summary.scoreboard_p50_ms} ms, p95 {summary.scoreboard_p95_ms} ms.")
    console.print("Verdicts: " + ", ".join(f"{verdict} {count}" for verdict, count in summary.verdicts.items()))
    if summary.unexpected:
        console.print(f"{summary.unexpected} verdicts differ from what the jury expects of its programs.")
    if summary.retried:
        retried = ", ".join(f"{status} {count} times" for status, count in summary.retried.items())
        console.print(f"Requests repeated after: {retried}.")
    if summary.errors:
        table = Table("error", "count")
        for reason, count in summary.errors.items():
            table.add_row(escape(reason), str(count))
        console.print(table)
    if board is not None:
        console.print(scoreboard_table(board, limit=_SHOWN))
    console.print(f"Result hash: {summary.result_hash} (equal for equal plans and verdicts).")
