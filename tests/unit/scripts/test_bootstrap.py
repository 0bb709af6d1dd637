"""Set-up says what is missing, and knows when there is nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import bootstrap


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], ["found none on PATH", "apt-get install python3.11 python3.11-venv"]),
        ([((3, 9, 2), True, "/usr/bin/python3")], ["/usr/bin/python3 (3.9.2): it is too old", "python3.11-venv"]),
        (
            [((3, 12, 3), False, "/usr/bin/python3")],
            ["/usr/bin/python3 (3.12.3): it has no venv module", "apt-get install python3.12-venv"],
        ),
    ],
)
def test_what_is_missing_is_named_with_the_package(found: list[bootstrap.Found], words: list[str]) -> None:
    message = bootstrap.explain(found)
    assert all(word in message for word in words)


def test_the_first_suitable_python_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, bootstrap.Found | None] = {
        "python3": ((3, 9, 2), True, "/usr/bin/python3"),
        "python3.13": None,
        "python3.12": ((3, 12, 1), False, "/usr/bin/python3.12"),
        "python3.11": ((3, 11, 2), True, "/usr/bin/python3.11"),
    }
    monkeypatch.delenv("ADJUDGE_PYTHON", raising=False)
    monkeypatch.setattr(bootstrap, "probe", answers.get)
    assert bootstrap.choose_python() == ("/usr/bin/python3.11", (3, 11, 2))
    monkeypatch.setenv("ADJUDGE_PYTHON", "python3.12")
    with pytest.raises(bootstrap.MissingDependencyError, match=r"python3\.12-venv"):
        bootstrap.choose_python()


def test_a_command_that_is_no_python_is_passed_over() -> None:
    assert bootstrap.probe("/bin/false") is None
    assert bootstrap.probe("no-such-python") is None


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone in miniature that has just been set up."""
    for folder in ("requirements", "launcher", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("requirements/run.txt", "pyproject.toml", "hatch_build.py", "launcher/main.c", ".venv/bin/python"):
        (tmp_path / file).write_text(file)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "LOCKS", tmp_path / "requirements")
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / ".venv/bin/python")
    monkeypatch.setattr(bootstrap, "LAUNCHER", tmp_path / "adjudge-box")
    monkeypatch.setattr(bootstrap, "STAMP", tmp_path / ".venv/stamp")
    bootstrap.STAMP.write_text(json.dumps({**bootstrap.wanted_state("run"), "launcher": False}))
    return tmp_path


def test_nothing_is_done_twice(clone: Path) -> None:
    assert bootstrap.is_ready("run")
    bootstrap.set_up("run")
    assert not (clone / ".cache").exists()


@pytest.mark.parametrize("changed", ["requirements/run.txt", "pyproject.toml", "hatch_build.py", "launcher/main.c"])
def test_a_change_of_what_it_depends_on_calls_for_a_set_up(clone: Path, changed: str) -> None:
    (clone / changed).write_text("changed")
    assert not bootstrap.is_ready("run")


def test_a_moved_clone_or_a_lost_launcher_calls_for_a_set_up(clone: Path) -> None:
    state = json.loads(bootstrap.STAMP.read_text())
    for spoilt in ({**state, "place": "/elsewhere"}, {**state, "launcher": True}):
        bootstrap.STAMP.write_text(json.dumps(spoilt))
        assert not bootstrap.is_ready("run")


def test_caches_go_into_the_clone_where_home_cannot_be_written(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no-such-place")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert bootstrap.environment()["UV_CACHE_DIR"] == str(clone / ".cache" / "uv")


def test_make_finds_a_python_in_a_folder_with_a_space(tmp_path: Path) -> None:
    """As it does once ``.venv/bin`` of a clone there is on the PATH, which a tutorial asks for."""
    clone = tmp_path / "a clone"
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python3").symlink_to(sys.executable)
    (clone / "scripts").mkdir()
    (clone / "scripts/bootstrap.py").write_text("import sys; print(sys.argv[1:])")
    shutil.copy(Path(bootstrap.__file__).parents[1] / "Makefile", clone)
    path = f"{clone / '.venv/bin'}:{os.environ['PATH']}"
    made = subprocess.run(["make", "ready"], cwd=clone, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert (made.stdout, made.returncode) == ("['run']\n", 0), made.stderr
