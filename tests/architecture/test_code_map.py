"""Files and modules that pages name exist, and the code map describes every package."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from scripts import generate_docs

SOURCE = generate_docs.ROOT / "src" / "adjudge"
MAP = generate_docs.DOCS / "explanation" / "code-map.md"
_OUTSIDE = ("src/", "tests/", "docs/", "scripts/", "bench/", "launcher/", "requirements/", "examples/")


def _paths(page: Path) -> set[str]:
    """What a page names as a file or folder, in back-ticks: from the root of the repository, or of the package."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    packages = tuple(f"{item.name}/" for item in SOURCE.iterdir() if item.is_dir())
    return {name for name in re.findall(r"`([\w./*-]+)`", text) if name.startswith((*_OUTSIDE, *packages))}


def _exists(name: str) -> bool:
    root = generate_docs.ROOT if name.startswith(_OUTSIDE) else SOURCE
    return any(root.glob(name.rstrip("/")))


def test_every_file_of_the_code_map_exists() -> None:
    named = {name for name in re.findall(r"`([a-z][\w./-]*(?:/|\.py|\.[ch]))`", MAP.read_text()) if "/" in name}
    assert len(named) > 80
    assert sorted(name for name in named if not _exists(name)) == []


def test_every_package_is_described() -> None:
    packages = {item.name for item in SOURCE.iterdir() if (item / "__init__.py").exists()}
    described = set(re.findall(r"^\| `(\w+)/` \| `", MAP.read_text(), re.MULTILINE))
    assert described == packages


def _pages() -> list[Path]:
    pages = [*generate_docs.DOCS.rglob("*.md"), *generate_docs.ROOT.glob("*.md")]
    return sorted(page for page in pages if generate_docs.MARK not in page.read_text())


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(generate_docs.ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    placeholders = {"tests/golden/languages/CODE/"}
    assert sorted(name for name in _paths(page) - placeholders if not _exists(name)) == []


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(generate_docs.ROOT)))
def test_modules_that_a_page_names_can_be_imported(page: Path) -> None:
    for name in set(re.findall(r"`(adjudge\.[a-z_]+\.[\w.]+)`", page.read_text())):
        module, _, member = name.rpartition(".")
        if not hasattr(importlib.import_module(module), member):
            importlib.import_module(name)
