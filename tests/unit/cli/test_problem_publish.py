"""``adjudge problem publish``: imports packages without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli import main
from adjudge.domain.ids import new_id
from adjudge.store import open_database
from adjudge.store.accounts import users
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import ProblemRow
from tests.support.problem_packages import icpc_package


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ADJUDGE_DATA_DIR", str(tmp_path))
    return f"sqlite:///{tmp_path}/adjudge.db"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "sum"
    for name, data in icpc_package("Sum").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _add_admin(url: str) -> None:
    async def add() -> None:
        async with open_database(url) as database:
            await database.transact(lambda tx: users.insert(tx, users.NewUser(new_id(), "root", role="admin")))

    asyncio.run(add())


def _found(url: str, slug: str) -> ProblemRow | None:
    async def find() -> ProblemRow | None:
        async with open_database(url) as database:
            return await database.read(lambda tx: problem_queries.find(tx, slug))

    return asyncio.run(find())


def _run(*argv: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["problem", "publish", *argv])
    return result.exit_code, result.output.splitlines()[-1]


def test_unchanged_package_is_not_published_again(url: str, source: Path) -> None:
    assert _run(str(source)) == (
        3,
        "adjudge: owner: there is no admin yet; run `adjudge up` once to create one. [INVALID_INPUT]",
    )
    _add_admin(url)
    assert _run(str(source), "--tags", "Math, warm up", "--difficulty", "800") == (0, "sum: revision 1 published.")
    assert _run(str(source)) == (0, "sum: unchanged (revision 1).")
    (source / "data/secret/1.in").write_text("6 5\n")
    assert _run(str(source), "--draft") == (0, "sum: revision 2 added as a draft.")
    problem = _found(url, "sum")
    assert problem is not None
    assert (problem.title, problem.tags, problem.difficulty) == ("Sum", ("math", "warm up"), 800)
    assert problem.published_revision_id is not None


def test_slug_with_several_packages_is_rejected(url: str, source: Path) -> None:
    code, said = _run(str(source), str(source), "--slug", "x")
    assert (code, "allowed with a single package only" in said) == (3, True)
