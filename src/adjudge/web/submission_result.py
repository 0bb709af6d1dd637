"""Prepares a result document for display: test rows, first failure, plots of time and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.domain.verdict import Verdict
from adjudge.web.i18n import Translations
from adjudge.web.plots import HALF, Bar, bars
from adjudge.web.status_style import status_class

Document = Mapping[str, Any]
_KIB = 1024
OWN_WORDS = frozenset({Verdict.RE, Verdict.TLE, Verdict.MLE, Verdict.OLE})
"""Verdicts whose message comes from the program, not from the checker."""


@dataclass(frozen=True, slots=True)
class ResultView:
    """One result, prepared for the page."""

    cases: Sequence[Document]
    """Test cases that were run."""
    not_run: int
    groups: Sequence[Document]
    """Groups with points; empty for problems without scoring."""
    is_scored: bool
    message: str
    pictures: Sequence[tuple[str, str]]
    """(title, drawing)"""


def build_result_view(t: Translations, document: Document, rows: Sequence[Document], language: str) -> ResultView:
    """Prepare the texts and plots of a result."""
    run = [row for row in rows if row.get("verdict")]
    is_scored = (document.get("max_score") or 1) != 1
    return ResultView(
        cases=run,
        not_run=len(rows) - len(run),
        groups=_groups(document) if is_scored else [],
        is_scored=is_scored,
        message=_message(t, document, language),
        pictures=_plots(t, run, document),
    )


def _message(t: Translations, document: Document, language: str) -> str:
    """The summary of a failure, translated where possible."""
    verdict, first = document.get("verdict"), document.get("first_failure")
    if verdict == Verdict.CE and ((document.get("compile") or {}).get("log") or not document.get("message")):
        return t("submission.compile_error", language=language)
    if first:  # the full message is shown with that test
        return t("submission.failed_on", verdict=t.label("verdict", verdict), test=first)
    return str(document.get("message") or "")


def _groups(document: Document) -> list[Document]:
    """The innermost groups with points."""
    every = [group for group in document.get("groups", ()) if group["max_score"]]
    paths = [group["path"] for group in every]

    def has_parts(path: str) -> bool:
        return any(other.startswith(f"{path}/") or (not path and other) for other in paths)

    return [group for group in every if not has_parts(group["path"])]


def _plots(t: Translations, run: Sequence[Document], document: Document) -> list[tuple[str, str]]:
    timed = [row for row in run if row.get("time_ms") is not None]
    if len(timed) < 2:
        return []
    limits = document.get("provenance", {}).get("limits", {})
    memory = limits.get("memory_bytes")
    kinds = (
        ("submission.times", "ms", [row["time_ms"] for row in timed], limits.get("cpu_ms")),
        (
            "submission.memories",
            "MiB",
            [round((row.get("mem_kb") or 0) / _KIB, 1) for row in timed],
            memory and memory / _KIB / _KIB,
        ),
    )
    drawn: list[tuple[str, str]] = []
    for key, unit, values, limit in kinds:
        items = [
            Bar(row["name"], value, status_class(row["verdict"]), f"{row['name']}: {row['verdict']}, {value:g} {unit}")
            for row, value in zip(timed, values, strict=True)
        ]
        drawn.append((t(key), bars(t(key), items, limit=limit, unit=unit, height=120, width=HALF)))
    return drawn
