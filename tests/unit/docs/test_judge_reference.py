"""The reference pages and the code name the same things."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Case, Group, PackageFormat, Problem
from adjudge.domain.programs import CheckerProtocol, ScoreUnit
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CaseResult, CheckerScore, ResourceUsage
from adjudge.judge.comparators import BUILTIN_COMPARATORS
from adjudge.judge.compile import CompileResult
from adjudge.judge.language_overlay import KEYS
from adjudge.judge.result_document import JudgeResult, Provenance, author_view
from adjudge.judge.scoring import score
from adjudge.judge.sources import ProgramSource, SourceFile

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"


def sections(page: str) -> dict[str, set[str]]:
    """Heading → every name in back-ticks below it."""
    parts = re.split(r"^## (.+)$", "## \n" + (DOCS / page).read_text(), flags=re.MULTILINE)
    text = {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
    return {heading: set(re.findall(r"`([^`\n]+)`", body)) for heading, body in text.items()}


def keys(page: str, heading: str) -> set[str]:
    """The names in the first column of a section's tables."""
    body = re.split(r"^## ", (DOCS / page).read_text(), flags=re.MULTILINE)
    section = next((part for part in body if part.startswith(heading + "\n")), body[0])
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.fixture
def document() -> dict[str, Any]:
    run = ResourceUsage(Verdict.TLE, 1, 1, 1, 0, 9, None)
    row = CaseResult("1", "", Verdict.AC, run=run, first_run=run, score=CheckerScore(Fraction(1), ScoreUnit.ABSOLUTE))
    problem = Problem("p", PackageFormat("plain"), cases=(Case("1", "", "in"),), groups=(Group(""),))
    provenance = Provenance(ProgramSource((SourceFile("a.c", b""),)), "c", "12", "p", "r", "icpc", {}, Limits())
    return JudgeResult(
        Verdict.AC,
        Fraction(1, 3),
        None,
        "",
        (row,),
        provenance,
        problem,
        score(problem, {"1": row}),
        CompileResult(None),
    ).document()


def test_every_key_of_the_result_document_is_documented(document: dict[str, Any]) -> None:
    page = "result-document.md"
    assert set(document) == keys(page, "Result document")
    assert set(document["compile"]) == keys(page, "compile")
    assert set(document["groups"][0]) == keys(page, "groups")
    assert set(document["cases"][0]) == keys(page, "cases")
    assert set(document["provenance"]) == keys(page, "provenance")
    assert set(document["cases"][0]["first_run"]) <= sections(page)["cases"]
    assert set(document["provenance"]["limits"]) <= sections(page)["provenance"]
    assert set(author_view(document)) <= sections(page)["Author view"]


def test_every_comparator_and_protocol_is_documented() -> None:
    named = set().union(*sections("checkers.md").values())
    assert set(BUILTIN_COMPARATORS) <= named
    assert {protocol.value for protocol in CheckerProtocol} - {"native"} <= named


def test_every_key_of_a_language_is_documented() -> None:
    named = keys("languages.md", "Languages")
    assert named == KEYS
