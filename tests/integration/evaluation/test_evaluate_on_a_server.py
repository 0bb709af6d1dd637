"""``adjudge eval --server`` on a real installation: interrupted, continued, each record evaluated once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pytest
from click.testing import CliRunner, Result

from adjudge.cli import eval_remote, main
from adjudge.cli.connection import LoginStore, SavedLogin
from adjudge.client import Client
from adjudge.evaluation.files import ResultFile
from tests.support.installation import Installation, start_embedded
from tests.support.problem_packages import icpc_package, zip_files

pytestmark = pytest.mark.slow
RECORDS = 20


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``adjudge up``."""
    with start_embedded(tmp_path_factory.mktemp("evaluations")) as found:
        yield found


@pytest.fixture
def records(installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of programs, every third of them wrong, one in C++ and one that does not compile; and a login."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    LoginStore().put(installation.url, SavedLogin(_token(installation)))
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(_record(number)) + "\n" for number in range(RECORDS)))
    return path


def _token(installation: Installation) -> str:
    return str(installation.admin.headers["Authorization"].removeprefix("Bearer "))


def _record(number: int) -> dict[str, Any]:
    tests = [{"input": f"{number}\n", "output": f"{2 * number}\n"}, {"input": "4\n", "output": "8\n"}]
    if number == 1:
        return {"id": number, "language": "cpp", "source": _CPP, "tests": tests}
    if number == 2:
        return {"id": number, "language": "cpp", "source": "int main() {", "tests": tests}
    factor = 3 if number % 3 == 0 else 2
    return {"id": number, "source": f"print({factor} * int(input()))\n", "tests": tests}


_CPP = "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << 2 * n; }\n"


def _expected(number: int) -> str:
    return "CE" if number == 2 else "WA" if number % 3 == 0 else "AC"


def run(installation: Installation, records: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["eval", str(records), "--server", installation.url, *more])


def test_an_interrupted_evaluation_is_continued(
    installation: Installation, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eval_remote, "CHUNK_RECORDS", 6)
    monkeypatch.setattr(eval_remote, "PENDING_RECORDS", 8)
    write = ResultFile.write

    def interrupted(results: ResultFile, file: IO[bytes], document: Mapping[str, Any]) -> None:
        write(results, file, document)
        if len(results.done) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ResultFile, "write", interrupted)
        first = run(installation, records)
    assert first.exit_code != 0
    path = records.with_suffix(".results.jsonl")
    before = path.read_text().splitlines()
    assert len(before) == 3

    again = run(installation, records)
    assert again.exit_code == 0, again.output
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.read_text().splitlines()[: len(before)] == before
    assert sorted(int(item["id"]) for item in found) == list(range(RECORDS))
    assert {int(item["id"]): item["verdict"] for item in found} == {n: _expected(n) for n in range(RECORDS)}
    with Client(installation.url, _token(installation)) as client:
        evaluation = client.evaluations().items[-1]
        whole = client.evaluation(evaluation.id)
        assert (whole.total, whole.finished) == (RECORDS, RECORDS), "each record was added and evaluated once"
        assert whole.verdicts == {"AC": 12, "CE": 1, "WA": 7}


SECRET_READER = "import sys; print(open(0).read(), file=sys.stderr); sys.exit(7)\n"


def test_records_of_a_problem_are_judged_like_submissions(installation: Installation, records: Path) -> None:
    package = icpc_package(**{"data/secret/2.in": "20 22\n", "data/secret/2.ans": "42\n"})
    installation.publish(zip_files(package), slug="add")
    programs = {
        "right": "print(sum(map(int, input().split())))\n",
        "wrong": "print(3)\n",
        "crash": SECRET_READER,
        "syntax": "(",
    }
    lines = [{"id": name, "source": source, "problem": "add"} for name, source in programs.items()]
    records.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {**lines[0], "id": "old", "revision": 1}]))
    ended = run(installation, records, "--name", "problem")
    assert ended.exit_code == 0, ended.output
    found = {
        line["id"]: line for line in map(json.loads, records.with_suffix(".results.jsonl").read_text().splitlines())
    }
    verdicts = {"right": "AC", "wrong": "WA", "crash": "RE", "syntax": "CE", "old": "AC"}
    assert {name: line["verdict"] for name, line in found.items()} == verdicts
    assert (found["right"]["passed"], found["right"]["total"]) == (3, 3)
    assert (found["wrong"]["passed"], found["wrong"]["total"], found["wrong"]["score"]) == (1, 3, 0)
    assert "message" not in found["wrong"]["tests"][1], "a checker's message tells of the secret test"
    assert found["syntax"]["compile_message"]
    assert all(test["mem_kb"] % 1_024 == 0 for test in found["right"]["tests"][1:])


def test_what_failed_is_evaluated_again_when_the_command_is_repeated(installation: Installation, records: Path) -> None:
    slow = {"id": "slow", "source": "while True: pass", "tests": [{"output": ""}], "limits": {"cpu_ms": 8_000}}
    quick = {"id": "quick", "source": "print(1)", "tests": [{"output": "1"}]}
    with Client(installation.url, _token(installation)) as client:
        evaluation = client.evaluate("again", [slow, quick])
        canceled = client.evaluation_cancel(evaluation.id)
        assert canceled.verdicts.get("error", 0) >= 1
    records.write_text(json.dumps(quick) + "\n")
    path = records.with_suffix(".results.jsonl")
    path.write_text(json.dumps({"id": "quick", "verdict": None, "error": "Canceled."}) + "\n")
    ended = run(installation, records, "--name", "again")
    assert ended.exit_code == 0, ended.output
    assert [json.loads(line)["verdict"] for line in path.read_text().splitlines()] == ["AC"]


def test_records_that_a_server_refuses_are_named(installation: Installation, records: Path) -> None:
    records.write_text(json.dumps({"id": 1, "source": "x", "problem": "nothing"}) + "\n")
    refused = run(installation, records, "--name", "refused")
    assert (refused.exit_code, "Line 1: problem: no problem 'nothing'" in refused.output) == (3, True)
    records.write_text(json.dumps({"id": 1, "tests": []}) + "\n")
    invalid = run(installation, records, "--name", "invalid")
    assert invalid.exit_code == 1, invalid.output
    assert '"error"' in records.with_suffix(".results.jsonl").read_text()
