"""Terminal output of verdicts: colours, lines, exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from adjudge.schema.submissions import SubmissionRead, SubmissionResultsRead

EXIT_REJECTED: Final = 1
EXIT_FAILED: Final = 2
_COLOURS: Final = {"AC": "green", "PA": "yellow", "SE": "magenta"}
_NO_VERDICT: Final = "--"


def styled_verdict_or_status(verdict: str | None, status: str = "") -> str:
    """The coloured verdict, or the status if there is none."""
    shown = verdict or status or _NO_VERDICT
    return f"[bold {_COLOURS.get(shown, 'red') if verdict else 'dim'}]{escape(shown):<4}[/]"


def format_test_result(case: Mapping[str, Any]) -> str:
    used = f"{case.get('time_ms') or 0:>6} ms {(case.get('mem_kb') or 0) / 1024:>7.1f} MiB"
    return f"{styled_verdict_or_status(case.get('verdict'))} {used}  {escape(str(case.get('name', '')))}"


def print_submission(console: Console, found: SubmissionRead, results: SubmissionResultsRead | None) -> None:
    """Print verdict, resource usage and first failure."""
    console.print(
        f"{styled_verdict_or_status(found.verdict, found.status)} {escape(found.problem)} in {escape(found.language)}"
    )
    console.print(f"submission  #{found.number} ({found.id})")
    if found.score is not None:
        console.print(f"score       {found.score:g}")
    if found.time_ms is not None:
        console.print(f"time        {found.time_ms} ms, memory {(found.mem_kb or 0) / 1024:.1f} MiB")
    document = (results.document if results else None) or {}
    compiled = document.get("compile") or {}
    if not compiled.get("ok", True):
        console.print(escape(str(compiled.get("log") or compiled.get("message") or "")))
    elif found.verdict != "AC" and document.get("message"):
        console.print(escape(str(document["message"])))


def exit_code(found: SubmissionRead) -> int:
    """0 for AC, 2 for SE, else 1."""
    if found.verdict == "AC":
        return 0
    return EXIT_FAILED if found.verdict in (None, "SE") else EXIT_REJECTED
