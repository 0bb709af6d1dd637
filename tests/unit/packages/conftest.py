"""Packages made on the fly: a folder from a map of names to contents, and readers over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from adjudge.packages.archive import open_package
from adjudge.packages.findings import Findings
from adjudge.packages.load import Package, read_package

Contents = Mapping[str, str | bytes]
Write = Callable[[Contents], Path]
Read = Callable[[Contents], tuple[Package, Findings]]


def write_tree(root: Path, contents: Contents) -> Path:
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda contents: write_tree(tmp_path / "problem", contents)


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Read]:
    with ExitStack() as stack:

        def _read(contents: Contents) -> tuple[Package, Findings]:
            root = write_tree(tmp_path / "problem", contents)
            files = stack.enter_context(open_package(root, scratch=tmp_path))
            findings = Findings()
            return read_package(files, "problem", findings), findings

        yield _read
