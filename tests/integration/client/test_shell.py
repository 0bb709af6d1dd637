"""The commands for contestants, against a real installation: problem and language by name, samples, completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.cli import main
from adjudge.cli.connection import LoginStore, SavedLogin
from tests.support.installation import Installation, start_embedded
from tests.support.problem_packages import folder_archive

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[3] / "examples" / "problems" / "multiples"
ACCEPTED = sorted((EXAMPLE / "submissions" / "accepted").glob("*.py"))[0].read_text()


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``adjudge up`` with one published problem."""
    with start_embedded(tmp_path_factory.mktemp("shell")) as found:
        found.publish(folder_archive(EXAMPLE), slug="multiples")
        yield found


@pytest.fixture
def home(installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for solutions, with a login."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ADJUDGE_JUDGE_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.setenv("ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP", "true")
    token = installation.admin.headers["Authorization"].removeprefix("Bearer ")
    LoginStore().put(installation.url, SavedLogin(token))
    return tmp_path


def run(*argv: str) -> Result:
    return CliRunner().invoke(main, list(argv))


def test_submit_finds_the_problem_by_the_name_of_the_file(home: Path) -> None:
    solution = home / "multiples_2.py"
    solution.write_text(ACCEPTED)
    answer = run("submit", str(solution), "--json")
    assert answer.exit_code == 0, answer.output
    wrong = home / "other.py"
    wrong.write_text("# adjudge: problem=multiples\nprint('?')\n")
    assert run("submit", str(wrong)).exit_code == 1
    unknown = home / "nothing.py"
    unknown.write_text("print(1)\n")
    refused = run("submit", str(unknown))
    assert (refused.exit_code, "use --problem" in refused.output) == (3, True)


def test_samples_are_run_on_this_machine(home: Path) -> None:
    solution = home / "multiples.py"
    solution.write_text(ACCEPTED)
    passed = run("test", str(solution))
    assert passed.exit_code == 0, passed.output
    assert "samples passed" in passed.output
    solution.write_text("print('?')\n")
    failed = run("test", str(solution), "--json")
    assert (failed.exit_code, json.loads(failed.output)["verdict"]) == (1, "WA")
    solution.write_text("print(\n")
    broken = run("test", str(solution))
    assert (broken.exit_code, "SyntaxError" in broken.output) == (1, True)


def test_slugs_are_completed_from_the_server(home: Path) -> None:
    script = run("completion", "bash")
    assert "_ADJUDGE_COMPLETE" in script.output
    environment = {
        **os.environ,
        "_ADJUDGE_COMPLETE": "bash_complete",
        "COMP_WORDS": "adjudge submit --problem mul",
        "COMP_CWORD": "3",
    }
    argv = [sys.executable, "-c", "from adjudge.cli import main; main(prog_name='adjudge')"]
    found = subprocess.run(argv, env=environment, cwd=home, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["plain,multiples"]
