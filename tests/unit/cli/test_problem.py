"""``adjudge problem`` with real packages, programs and sandbox."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.cli import main


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["problem", *map(str, arguments)])


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("ADJUDGE_JUDGE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "artifacts"))


@pytest.fixture
def new_package(tmp_path: Path) -> Path:
    result = _run("new", tmp_path / "sum", "--title", "It's a sum: #1")
    assert result.exit_code == 0, result.output
    return tmp_path / "sum"


def _write(root: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_new_package_verifies(new_package: Path) -> None:
    checked = _run("check", new_package, "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout) == {"ok": True, "findings": []}
    verified = _run("verify", new_package, "--json")
    assert verified.exit_code == 0, verified.output
    found = json.loads(verified.stdout)
    verdicts = {item["path"]: item["verdict"] for item in found["submissions"]}
    assert verdicts == {
        "accepted/solution.cpp": "AC",
        "accepted/solution.py": "AC",
        "wrong_answer/overflow.cpp": "WA",
    }
    assert found["ok"]
    assert found["time_limit"]["suggested_ms"] == 1000
    shown = json.loads(_run("show", new_package, "--json").stdout)
    assert shown["problem"]["titles"] == {"en": "It's a sum: #1"}
    assert len(shown["revision"]) == 64
    assert _run("new", new_package).exit_code == 3


def test_verify_reports_unmet_expectations(new_package: Path) -> None:
    (new_package / "submissions/accepted/wrong.py").write_text("input()\nprint(6)\n")
    (new_package / "data/secret/02.in").write_text("2\n1  2\n")
    (new_package / "data/secret/02.ans").write_text("3\n")
    (new_package / "data/invalid_input/valid.in").write_text("1\n5\n")
    result = _run("verify", new_package, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert {item["where"] for item in found["complaints"]} == {"secret/02", "invalid_input/valid"}
    wrong = next(item for item in found["submissions"] if item["path"] == "accepted/wrong.py")
    assert wrong["reasons"] == ["WA on secret/01-large, permitted: AC/PA"]
    table = _run("verify", new_package)
    assert table.exit_code == 1
    assert "WA on secret/01-large" in table.stdout


def test_check_lists_every_finding_with_file_and_line(new_package: Path) -> None:
    with (new_package / "problem.yaml").open("a") as file:
        file.write("colour: red\n")
    (new_package / "data/secret/01-large.in").write_bytes(b"1\n5\r\n")
    (new_package / "data/sample/1.ans").unlink()
    result = _run("check", new_package)
    assert result.exit_code == 1
    assert "problem.yaml:10: error: colour: is not a key of this format. Remove it." in result.stdout
    assert "data/sample/1.in: error: has no answer file beside it." in result.stdout
    assert "data/secret/01-large.in:2: warning: has Windows line endings." in result.stdout
    assert _run("verify", new_package).exit_code == 3


def test_export_and_import_again(new_package: Path, tmp_path: Path) -> None:
    archive = tmp_path / "sum.zip"
    assert _run("export", new_package, "--to", archive).exit_code == 0
    with zipfile.ZipFile(archive) as opened:
        assert "problem.yaml" in opened.namelist()
    assert _run("export", new_package, "--to", archive).exit_code == 3
    listed = _run("import", archive)
    assert "data/secret/01-large.in" in listed.stdout
    assert _run("import", archive, "--to", tmp_path / "again").exit_code == 0
    first, second = (json.loads(_run("show", place, "--json").stdout) for place in (new_package, tmp_path / "again"))
    assert first["manifest"] == second["manifest"]
    first["problem"].pop("short_name"), second["problem"].pop("short_name")
    assert first["problem"]["cases"] == second["problem"]["cases"]


DMOJ = {
    "init.yml": "generator: gen.py\ntest_cases:\n- {generator_args: [2, 3]}\n- {generator_args: [4, 5]}\n",
    "gen.py": "import sys\na, b = map(int, sys.argv[1:])\nprint(a, b)\nprint(a + b, file=sys.stderr)\n",
}


def test_generated_files_are_created_in_the_sandbox(tmp_path: Path) -> None:
    source = _write(tmp_path / "dmoj", DMOJ)
    result = _run("import", source, "--to", tmp_path / "out")
    assert result.exit_code == 0, result.output
    made = [(tmp_path / "out/data/secret/1" / name).read_text() for name in ("1.in", "1.ans", "2.in", "2.ans")]
    assert made == ["2 3\n", "5\n", "4 5\n", "9\n"]


def test_failing_generator_rejects_the_package(tmp_path: Path) -> None:
    source = _write(tmp_path / "dmoj", {**DMOJ, "gen.py": "import sys\nsys.exit('no luck')\n"})
    result = _run("import", source, "--to", tmp_path / "out")
    assert result.exit_code == 3
    assert "could not be made: gen.py ended with RE. no luck" in result.stderr
    assert not (tmp_path / "out").exists()


POLYGON = {
    "problem.xml": """<problem short-name="sum" revision="1"><names><name language="english" value="Sum"/></names>
        <judging input-file="sum.in" output-file="sum.out"><testset name="tests"><time-limit>1000</time-limit>
        <memory-limit>67108864</memory-limit><test-count>2</test-count>
        <input-path-pattern>tests/%02d</input-path-pattern><answer-path-pattern>tests/%02d.a</answer-path-pattern>
        <tests><test method="manual" sample="true"/><test method="generated" cmd="gen 40 2"/></tests></testset>
        </judging>
        <files><executables><executable><source path="files/gen.py" type="python.3"/></executable></executables></files>
        <assets><checker name="std::wcmp.cpp" type="testlib"><source path="files/check.cpp" type="cpp.g++"/></checker>
        <validators><validator><source path="files/val.py" type="python.3"/></validator></validators>
        <solutions><solution tag="main"><source path="solutions/a.py" type="python.3"/></solution>
        <solution tag="wrong-answer"><source path="solutions/b.py" type="python.3"/></solution></solutions></assets>
        </problem>""",
    "tests/01": "1 2\n",
    "files/gen.py": "import sys\nprint(*sys.argv[1:])\n",
    "files/check.cpp": "",
    "files/val.py": "import sys\nsys.exit(len(sys.stdin.read().split()) != 2)\n",
    "solutions/a.py": "print(sum(map(int, open('sum.in').read().split())), file=open('sum.out', 'w'))\n",
    "solutions/b.py": "print(3, file=open('sum.out', 'w'))\n",
}


def test_standard_polygon_package_is_built_and_verified(tmp_path: Path) -> None:
    source = _write(tmp_path / "polygon", POLYGON)
    result = _run("verify", source, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [item["verdict"] for item in found["submissions"]] == ["AC", "WA"]
    refused = _run("export", source, "--to", tmp_path / "p.zip")
    assert refused.exit_code == 3
    assert "named files (sum.in and sum.out)" in refused.stderr


def test_invalid_package_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"nothing")
    for name in ("show", "verify", "import"):
        result = _run(name, tmp_path / "x.zip")
        assert result.exit_code == 3
        assert "not a valid ZIP archive" in result.stderr
    assert _run("check", tmp_path / "x.zip").exit_code == 1


def test_unconvertible_package_is_not_called_invalid(tmp_path: Path) -> None:
    yaml = "symlinks: {a.in: /dev/stdin}\ntest_cases: [{in: 1.in, out: 1.in}]\n"
    source = _write(tmp_path / "linked", {"init.yml": yaml, "1.in": "1\n"})
    assert _run("check", source).exit_code == 0
    result = _run("import", source, "--to", tmp_path / "out")
    assert result.exit_code == 3
    said = result.output
    assert "can be used as it is, but not be converted" in said
    assert "adjudge problem publish" in said
    assert "cannot be used" not in said


def test_links_inside_the_repository_are_followed_and_others_on_request(new_package: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shared.h").write_text("")
    (new_package / "attachments").mkdir(exist_ok=True)
    (new_package / "attachments" / "shared.h").symlink_to("../../shared.h")
    assert _run("check", new_package).exit_code == 0
    (new_package / "attachments" / "hosts").symlink_to("/etc/hosts")
    refused = _run("check", new_package)
    assert (refused.exit_code, "--follow-links" in refused.output) == (1, True)
    assert _run("check", new_package, "--follow-links").exit_code == 0
