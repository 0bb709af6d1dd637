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
        (evaluation,) = client.evaluations().items
        whole = client.evaluation(evaluation.id)
        assert (whole.total, whole.finished) == (RECORDS, RECORDS), "each record was added and evaluated once"
        assert whole.verdicts == {"AC": 12, "CE": 1, "WA": 7}


def test_records_that_a_server_refuses_are_named(installation: Installation, records: Path) -> None:
    records.write_text(json.dumps({"id": 1, "source": "x", "problem": "sum"}) + "\n")
    refused = run(installation, records, "--name", "refused")
    assert (refused.exit_code, "Line 1: problem: not supported on a server yet" in refused.output) == (3, True)
    records.write_text(json.dumps({"id": 1, "tests": []}) + "\n")
    invalid = run(installation, records, "--name", "invalid")
    assert invalid.exit_code == 1, invalid.output
    assert '"error"' in records.with_suffix(".results.jsonl").read_text()
