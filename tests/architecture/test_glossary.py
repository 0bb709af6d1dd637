"""The glossary names classes, tables and files that exist, and the documentation does not use the retired words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.store.schema import METADATA
from scripts import generate_docs

SOURCE = generate_docs.ROOT / "src" / "adjudge"
PAGE = (generate_docs.DOCS / "reference" / "glossary.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| (?!term \|)[a-z]", line)
]
TERMS = {row[0]: row for row in ROWS}


def test_terms_are_unique_and_defined_in_a_sentence() -> None:
    assert len(ROWS) == len(TERMS) > 80
    assert [row[0] for row in ROWS if len(row) != 4 or not row[1].endswith(".")] == []


def test_no_term_is_a_retired_word() -> None:
    """In its own meaning: a word may be retired in one meaning and be the term for another."""
    for term, _, _, replaced in ROWS:
        assert term not in [word.strip() for word in replaced.split(",")], term


def test_classes_tables_and_files_exist() -> None:
    classes = {
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    for term, _, code, _ in ROWS:
        for kind, name in re.findall(r"(table )?`([^`]+)`", code):
            if kind:
                assert name in METADATA.tables, f"{term}: there is no table {name}"
            elif "/" in name:
                assert (SOURCE / name).exists() or (generate_docs.ROOT / name).exists(), (
                    f"{term}: there is no file {name}"
                )
            else:
                assert name in classes, f"{term}: there is no class {name}"


def test_verdicts_are_listed_completely() -> None:
    assert set(re.findall(r"\b[A-Z]{2,3}\b", TERMS["verdict"][1])) == {str(verdict) for verdict in Verdict}


def _retired() -> list[str]:
    section = PAGE.partition("## Retired words\n")[2].partition(":")[2]
    return [" ".join(word.split()) for word in section.strip().rstrip(".").split(",")]


def _pages() -> list[Path]:
    pages = [*generate_docs.DOCS.rglob("*.md"), *generate_docs.ROOT.glob("*.md")]
    return sorted(page for page in pages if page.name != "glossary.md")


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(generate_docs.ROOT)))
def test_retired_words_are_not_used(page: Path) -> None:
    words = _retired()
    assert len(words) > 10
    text = re.sub(r"<!--.*?-->|```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", page.read_text(), flags=re.DOTALL)
    found = re.findall(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", " ".join(text.split()), re.IGNORECASE)
    assert not found, "see docs/reference/glossary.md for the term to use"
