"""Everything a person can meet is documented: settings, commands, metrics, error codes, statements, states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adjudge.api import errors
from adjudge.cli import COMMANDS
from adjudge.domain.errors import RefusalReason
from adjudge.domain.states import STATE_MACHINES
from adjudge.observe import metrics
from adjudge.settings import all_settings, environment_names
from scripts import generate_docs

DOCS = generate_docs.DOCS


def _named(page: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", (DOCS / "reference" / page).read_text()))


def test_settings_are_documented() -> None:
    names = {name for name, _, _ in all_settings()} | {
        item for _, _, setting in all_settings() for item in environment_names(setting)
    }
    assert names <= _named("settings.md")


def test_metrics_are_documented() -> None:
    assert {metric.name for metric in metrics.ALL_METRICS} <= _named("metrics.md")


def test_error_codes_and_reasons_are_documented() -> None:
    generate_docs.import_everything()
    assert {row.code for row in errors.error_code_table()} | set(RefusalReason) <= _named("errors.md")


def test_commands_are_documented() -> None:
    """Except hidden ones: these are former names."""
    shown = {f"adjudge {name}" for name, command in COMMANDS.items() if not command.hidden}
    assert len(shown) > 10
    assert shown <= _named("cli.md")


def test_statements_have_unique_names_a_purpose_and_a_place_in_the_docs() -> None:
    statements = generate_docs.statements()
    names = [statement.name for statement in statements]
    assert len(names) == len(set(names))
    assert all(statement.purpose.strip() for statement in statements)
    assert set(names) <= _named("sql-statements.md")


def test_states_are_drawn() -> None:
    page = (DOCS / "explanation" / "architecture.md").read_text()
    assert all(machine.mermaid() in page for machine in STATE_MACHINES)


def test_generated_pages_are_up_to_date() -> None:
    for path, text in generate_docs.generated_files():
        assert path.read_text() == text, f"{path.name} is out of date: run `make docs`"


def _pages() -> list[Path]:
    return sorted([*DOCS.rglob("*.md"), *generate_docs.ROOT.glob("*.md")])


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(generate_docs.ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    broken = []
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
        target = (page.parent / link) if link else page
        if "://" not in link and (
            not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target))
        ):
            broken.append(f"{link}#{anchor}")
    assert not broken


def _anchors(page: Path) -> set[str]:
    """The anchors that renderers derive from headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_index_links_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.glob("*/*.md") if page.parent.name != "adr"]
    assert [page for page in sorted(pages) if f"({page})" not in index] == []


def test_decision_index_lists_every_record_with_its_title() -> None:
    folder = DOCS / "adr"
    index = (folder / "README.md").read_text()
    records = sorted(page for page in folder.glob("[0-9]*.md") if page.name != "0000-template.md")
    for page in records:
        number, title = re.fullmatch(r"# (\d{4}): (.+)", page.read_text().splitlines()[0]).groups()  # type: ignore[union-attr]
        assert page.name.startswith(number), page.name
        assert f"| [{number}]({page.name}) | {title} |\n" in index, f"{page.name}: the index has another title"
    listed = re.findall(r"^\| \[(\d{4})\]", index, re.MULTILINE)
    assert listed == sorted(listed), "the index is in the order of the numbers"
