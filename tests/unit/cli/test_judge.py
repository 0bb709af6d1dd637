"""``adjudge judge``, ``check`` and ``languages``: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.cli import main


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "sum"
    folder.mkdir()
    for number in (1, 2, 3):
        (folder / f"{number}.in").write_text(f"{number} {number}\n")
        (folder / f"{number}.ans").write_text(f"{2 * number}\n")
    return folder


def run(*args: str | Path, cache: Path) -> Result:
    env = {"ADJUDGE_JUDGE_CACHE_DIR": str(cache / "cache")}
    return CliRunner().invoke(main, [str(arg) for arg in args], env=env)


@pytest.mark.parametrize(
    ("text", "verdict", "code"),
    [
        ("read a b; echo $((a + b))", "AC", 0),
        ("read a b; echo $((a * b))", "WA", 1),
        ("exit 3", "RE", 1),
        ("if", "CE", 1),
    ],
)
def test_judge(package: Path, tmp_path: Path, text: str, verdict: str, code: int) -> None:
    solution = tmp_path / "solution.sh"
    solution.write_text(text)
    machine = run("judge", solution, "--problem", package, "--json", "--jobs", "2", cache=tmp_path)
    document = json.loads(machine.stdout)
    assert (document["verdict"], machine.exit_code) == (verdict, code)
    assert {"score", "time_ms", "mem_kb", "message", "cases"} <= set(document)
    assert all({"name", "group", "verdict", "time_ms", "mem_kb"} <= set(row) for row in document["cases"])
    people = run("judge", solution, "--problem", package, cache=tmp_path)
    assert people.exit_code == code
    assert verdict in people.stdout


def test_judge_rejects_invalid_arguments(package: Path, tmp_path: Path) -> None:
    solution = tmp_path / "solution.xyz"
    solution.write_text("")
    for args in (
        (tmp_path / "nothing.py", "--problem", package),
        (solution, "--problem", package),
        (solution, "--problem", package, "--language", "klingon"),
        (solution, "--problem", tmp_path / "nowhere", "--language", "bash"),
    ):
        refused = run("judge", *args, cache=tmp_path)
        assert refused.exit_code == 3, refused.output
        assert "adjudge:" in refused.output


def test_check_with_comparators(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("1.0 yes\n")
    (tmp_path / "close").write_text("1.0000001 YES\n")
    (tmp_path / "far").write_text("1.1 yes\n")
    given = ("check", "--checker", "icpc", "--flags", "float_tolerance 1e-6", "--answer", tmp_path / "answer")
    assert run(*given, tmp_path / "close", cache=tmp_path).exit_code == 0
    far = run(*given, tmp_path / "far", cache=tmp_path)
    assert (far.exit_code, far.stdout) == (1, "WA token 1: expected '1.0', found '1.1', off by 0.1\n")
    broken = run("check", "--checker", "ncmp", "--answer", tmp_path / "answer", tmp_path / "far", cache=tmp_path)
    assert broken.exit_code == 2
    assert (
        run("check", "--checker", "no", "--answer", tmp_path / "answer", tmp_path / "far", cache=tmp_path).exit_code
        == 3
    )
    assert run(*given, tmp_path / "none", cache=tmp_path).exit_code == 3


@pytest.mark.parametrize(
    ("text", "code"), [("exit 42", 0), ("exit 43", 1), ("exit 0", 2), ("# like testlib\nexit 0", 0), ("if", 2)]
)
def test_check_with_a_checker_program(tmp_path: Path, text: str, code: int) -> None:
    checker = tmp_path / "checker.sh"
    checker.write_text(f"cat > /dev/null\n{text}")
    for name in ("input", "answer", "output"):
        (tmp_path / name).write_text("x")
    args = ("--input", tmp_path / "input", "--answer", tmp_path / "answer", tmp_path / "output")
    said = run("check", "--checker", checker, *args, cache=tmp_path)
    assert said.exit_code == code, said.output


def test_languages(tmp_path: Path) -> None:
    rows = {row["id"]: row for row in json.loads(run("languages", "--json", cache=tmp_path).stdout)}
    assert rows["bash"]["installed"]
    assert "GNU bash" in rows["bash"]["version"]
    assert all(row["package"] for row in rows.values())
    assert all(row["installed"] or "apt install" in row["missing"] for row in rows.values())
    assert "cpp20" in run("languages", cache=tmp_path).stdout


def test_languages_show_factor_source_and_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = tmp_path / "languages.toml"
    overlay.write_text("[bash]\ntime_factor = 2.5\npin = '1.0'\n[awk]\ndisabled = true\n")
    monkeypatch.setenv("ADJUDGE_JUDGE_LANGUAGES_FILE", str(overlay))
    rows = {row["id"]: row for row in json.loads(run("languages", "--json", cache=tmp_path).stdout)}
    bash = rows["bash"]
    assert (bash["time_factor"], bash["source"], bash["changed_keys"]) == (2.5, "changed", ["pin", "time_factor"])
    assert (bash["installed"], bash["pin"], rows["awk"]["disabled"]) == (False, "1.0", True)
    assert rows["c"]["source"] == "built-in"
    assert rows["c"]["compile"][0] == "gcc"
    printed = run("languages", "--commands", cache=tmp_path).stdout
    assert "is installed, but 1.0 is pinned" in printed
    assert "c compile: gcc -x c" in printed


def test_printed_pins_are_an_overlay_that_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = tmp_path / "languages.toml"
    overlay.write_text(run("languages", "--pin", cache=tmp_path).stdout)
    assert "[bash]" in overlay.read_text()
    monkeypatch.setenv("ADJUDGE_JUDGE_LANGUAGES_FILE", str(overlay))
    rows = {row["id"]: row for row in json.loads(run("languages", "--json", cache=tmp_path).stdout)}
    assert rows["bash"]["installed"]
    assert rows["bash"]["pin"] in rows["bash"]["version"]
