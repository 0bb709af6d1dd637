"""Migrations form one line: 0001, 0002, … without a gap, a fork or a number that is used twice.

Branches that were made at the same time may take the same number. Each of them works alone; together no database can be
opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

VERSIONS = Path(__file__).resolve().parents[2] / "src" / "adjudge" / "store" / "migrations" / "versions"
_REVISION = re.compile(r"^revision(?:: \w+)? = \"(\w+)\"$", re.MULTILINE)
_DOWN = re.compile(r"^down_revision(?:: [\w |]+)? = (?:\"(\w+)\"|None)$", re.MULTILINE)


def problems(sources: Mapping[str, str]) -> Sequence[str]:
    """What is wrong with migrations, given as file name and text."""
    found = []
    for number, name in enumerate(sorted(sources), 1):
        wanted, before = f"{number:04}", f"{number - 1:04}" if number > 1 else None
        revision, down = _REVISION.search(sources[name]), _DOWN.search(sources[name])
        if not name.startswith(f"{wanted}_"):
            found.append(f"{name}: number {wanted} comes here; give each migration a number of its own, without gaps")
        if revision is None or revision[1] != wanted:
            found.append(f'{name}: write revision = "{wanted}"')
        if down is None or down[1] != before:
            found.append(f"{name}: write down_revision = {before and chr(34) + before + chr(34)}")
    return found


def test_migrations_form_one_line() -> None:
    found = problems({path.name: path.read_text() for path in VERSIONS.glob("*.py")})
    assert not found, "\n".join(found)


def test_duplicates_gaps_and_forks_are_noticed() -> None:
    def text(revision: str, down: str | None) -> str:
        return f'revision = "{revision}"\ndown_revision = {down and chr(34) + down + chr(34)}\n'

    line = {"0001_a.py": text("0001", None), "0002_b.py": text("0002", "0001")}
    assert problems(line) == []
    assert problems({**line, "0002_c.py": text("0002", "0001")}), "a number that is used twice"
    assert problems({**line, "0004_c.py": text("0004", "0002")}), "a gap"
    assert problems({**line, "0003_c.py": text("0003", "0001")}), "a fork"
    assert problems({**line, "0003_c.py": text("0002", "0002")}), "a revision that is not the file's number"
    assert problems({**line, "0003_c.py": ""}), "no revision"
