"""Migrations expand first and contract a release later, so that roles of two neighbouring versions work together.

A migration that removes or narrows something that the previous version uses would break its processes during a rolling
upgrade. Such a step is allowed only in a migration whose docstring says ``Contracts NNNN.``: the revision, of a release
at the latest, since which nothing uses it any more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.releases import Release, changelog_releases, releases

VERSIONS = Path(__file__).resolve().parents[2] / "src" / "adjudge" / "store" / "migrations" / "versions"
_CONTRACTS = re.compile(r"\bContracts (\d{4})\.")
_NARROWING_SQL = re.compile(
    r"\bDROP\s+(?:TABLE|COLUMN|VIEW|FUNCTION)\b|\bRENAME\b|\bSET\s+NOT\s+NULL\b|\bALTER\s+COLUMN\s+\S+\s+(?:SET\s+DATA\s+)?"
    r"TYPE\b|\bADD\s+CONSTRAINT\b|\bADD\s+(?:COLUMN\s+)?(?!CONSTRAINT\b)(?=[^;]*\bNOT\s+NULL\b)(?![^;]*\bDEFAULT\b)",
    re.IGNORECASE,
)
_NARROWING_CALLS = {
    *("drop_table", "drop_column", "rename_table", "create_check_constraint", "create_unique_constraint"),
    *("create_foreign_key",),
}


def narrowing_steps(source: str) -> list[str]:
    """The steps of a migration's upgrade that an older version may not survive."""
    tree = ast.parse(source)
    upgrade = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade"), None)
    return [] if upgrade is None else [step for node in ast.walk(upgrade) for step in _steps_of(node)]


def _steps_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from (" ".join(found[0].split()) or "ADD … NOT NULL" for found in _NARROWING_SQL.finditer(node.value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        options = {option.arg: option.value for option in node.keywords}
        if node.func.attr in _NARROWING_CALLS:
            yield node.func.attr
        elif node.func.attr == "alter_column" and {"new_column_name", "type_", "nullable"} & options.keys():
            yield "alter_column"
        elif node.func.attr == "add_column":
            yield from _required_columns(node)


def _required_columns(call: ast.Call) -> Iterator[str]:
    for column in call.args[1:]:
        options = {option.arg: option.value for option in getattr(column, "keywords", ())}
        nullable = options.get("nullable")
        if isinstance(nullable, ast.Constant) and nullable.value is False and "server_default" not in options:
            yield "add_column without a default"


def problems(sources: Mapping[str, str], known: list[Release]) -> list[str]:
    """What is wrong with migrations after the baseline, given the releases, newest first."""
    released = known[0].schema_revision if known else "0000"
    found = []
    for name, source in sorted(sources.items()):
        contracts = _CONTRACTS.search(ast.get_docstring(ast.parse(source)) or "")
        steps = narrowing_steps(source)
        if steps and contracts is None:
            found.append(f"{name}: {', '.join(steps)}: older processes still use it; do it a release later")
        elif steps and contracts is not None and contracts[1] > released:
            found.append(f"{name}: {contracts[1]} is in no release yet ({released} is); do it a release later")
    return found


def test_migrations_after_the_baseline_expand_first() -> None:
    later = {path.name: path.read_text() for path in VERSIONS.glob("*.py") if not path.name.startswith("0001_")}
    assert not problems(later, changelog_releases())


def test_released_schema_revisions_exist() -> None:
    """The newest release may not be ahead of the migrations, and the first release freezes the baseline (ADR 0072)."""
    revisions = {path.name.partition("_")[0] for path in VERSIONS.glob("*.py")}
    known = changelog_releases()
    assert {release.schema_revision for release in known} <= revisions
    script = Path(__file__).resolve().parents[2] / "scripts" / "write_baseline.py"
    assert not known or not script.exists(), "the baseline is released: delete scripts/write_baseline.py"


def _migration(step: str, docstring: str = "Change something.") -> str:
    return f'"""{docstring}"""\n\n\ndef upgrade():\n    {step}\n\n\ndef downgrade():\n    op.drop_table("t")\n'


@pytest.mark.parametrize(
    "step",
    [
        'op.execute("CREATE TABLE t (id TEXT PRIMARY KEY, name TEXT NOT NULL)")',
        'op.execute("ALTER TABLE t ADD COLUMN size BIGINT")',
        'op.execute("ALTER TABLE t ADD COLUMN size BIGINT DEFAULT 0 NOT NULL")',
        'op.add_column("t", Column("size", BigInteger, nullable=False, server_default="0"))',
        'op.create_index("t_name", "t", ["name"])',
    ],
)
def test_expanding_steps_are_allowed(step: str) -> None:
    assert problems({"0002_a.py": _migration(step)}, []) == []


@pytest.mark.parametrize(
    "step",
    [
        'op.execute("DROP TABLE t")',
        'op.execute("ALTER TABLE t DROP COLUMN name")',
        'op.execute("ALTER TABLE t RENAME COLUMN a TO b")',
        'op.execute("ALTER TABLE t ALTER COLUMN a TYPE bigint")',
        'op.execute("ALTER TABLE t ALTER COLUMN a SET NOT NULL")',
        'op.execute("ALTER TABLE t ADD COLUMN size BIGINT NOT NULL")',
        'op.execute("ALTER TABLE t ADD CONSTRAINT t_known CHECK (a > 0)")',
        'op.drop_column("t", "a")',
        'op.alter_column("t", "a", nullable=False)',
        'op.add_column("t", Column("size", BigInteger, nullable=False))',
    ],
)
def test_narrowing_steps_need_a_release_before(step: str) -> None:
    later = {"0004_a.py": _migration(step, "Remove something. Contracts 0003.")}
    assert problems({"0004_a.py": _migration(step)}, [])
    assert problems(later, []), "nothing is released"
    assert problems(later, [Release("1.0.0", "abc1234", "0002")]), "the release before still uses it"
    assert problems(later, [Release("1.1.0", "abc1234", "0003")]) == []


def test_releases_are_read_from_the_changelog() -> None:
    text = (
        "## [Unreleased]\n\n## [1.1.0] - 2027-05-01\n\nCommit: `0123abcd`. Schema revision: 0003.\n\n"
        "## [1.0.0] - 2027-03-01\n\nCommit: `89abcdef`. Schema revision: 0001.\n"
    )
    assert releases(text) == [Release("1.1.0", "0123abcd", "0003"), Release("1.0.0", "89abcdef", "0001")]
    with pytest.raises(AssertionError, match=r"version 1\.1\.0 lacks a line"):
        releases("## [1.1.0] - 2027-05-01\n\n## [1.0.0]\n\nCommit: `89abcdef`. Schema revision: 0001.\n")
