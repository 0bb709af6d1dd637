"""Releases as the changelog names them, and installations of earlier ones for tests of upgrades.

A release is a section ``## [1.2.0] - 2027-03-01`` with the line ``Commit: `0123abc`. Schema revision: 0003.``
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.install import ROOT

_SECTION = re.compile(r"^## \[(?P<version>\d+\.\d+\.\d+)\]", re.MULTILINE)
_ORIGIN = re.compile(r"^Commit: `(?P<commit>[0-9a-f]{7,40})`\. Schema revision: (?P<revision>\d{4})\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Release:
    """A released version."""

    version: str
    commit: str
    schema_revision: str


def releases(changelog: str) -> list[Release]:
    """The releases of a changelog, newest first; one without its commit is an error."""
    found = []
    sections = [*_SECTION.finditer(changelog)]
    ends = [*(section.start() for section in sections[1:]), len(changelog)]
    for section, end in zip(sections, ends, strict=False):  # without a release there is one end
        origin = _ORIGIN.search(changelog, section.end(), end)
        assert origin is not None, (
            f"CHANGELOG.md: version {section['version']} lacks a line: Commit: `HASH`. Schema revision: NNNN."
        )
        found.append(Release(section["version"], origin["commit"], origin["revision"]))
    return found


def changelog_releases() -> list[Release]:
    """The releases of this project, newest first."""
    return releases((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def install_previous(folder: Path) -> Path:
    """Build a wheel of the newest release and install it into a folder, for ``PYTHONPATH``.

    Before the first release there is no earlier version with this schema: the wheel is that of the last commit.
    """
    known = changelog_releases()
    commit = known[0].commit if known else "HEAD"
    tree, wheels, installed = folder / "tree", folder / "wheels", folder / "installed"
    tree.mkdir(parents=True)
    archive = folder / "tree.tar"
    with archive.open("wb") as file:
        subprocess.run(["git", "-C", str(ROOT), "archive", commit], stdout=file, check=True)
    with tarfile.open(archive) as members:
        members.extractall(tree, filter="data")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)], tree)
    (wheel,) = wheels.glob("*.whl")
    _run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(installed), str(wheel)],
        tree,
    )
    return installed


def _run(argv: list[str], folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}"
