"""DOMjudge's ``submit`` and BAPCtools against a real installation: a contest is exported, taken part in, and read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.domjudge_clients import ClientFailure, ExportProgram, SubmitProgram
from tests.support.installation import PASSWORD, Installation, start_embedded
from tests.support.problem_packages import icpc_package, zip_files

pytestmark = pytest.mark.slow
CONTEST = """
name: Delta Programming Contest
short_name: dpc
contest_id: dpc
start_time: {start}
duration: 5:00:00
scoreboard_freeze_duration: 1:00:00
penalty_time: 20
test_session: false
exists: true
"""
PROBLEMS = """
- id: adding
  label: A
  name: {en: Adding, nl: Optellen}
  rgb: '#000000'
  time_limit: 1.0
- id: joining
  label: B
  name: Joining
  rgb: '#000000'
  time_limit: 1.0
"""
RIGHT = "print(sum(map(int, input().split())))\n"
JAVA = """
public class {name} {{
    public static void main(String[] args) {{
        java.util.Scanner in = new java.util.Scanner(System.in);
        System.out.println(in.nextInt() + in.nextInt());
    }}
}}
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``adjudge up`` with a setter and a team."""
    with start_embedded(tmp_path_factory.mktemp("domjudge")) as found:
        found.user("jury", "setter")
        found.user("team1")
        yield found


@pytest.fixture(scope="module")
def exporter(installation: Installation) -> ExportProgram:
    return ExportProgram(installation.url, "jury", PASSWORD)


def _package(name: str) -> bytes:
    """A package as BAPCtools makes it: everything is in a folder, and folders are entries."""
    files = icpc_package(title=name.title())
    folders = {f"{name}/{path.rpartition('/')[0]}/" for path in files if "/" in path}
    return zip_files(
        dict.fromkeys([f"{name}/", *sorted(folders)], b"") | {f"{name}/{path}": files[path] for path in files}
    )


@pytest.fixture(scope="module")
def contest(installation: Installation, exporter: ExportProgram) -> str:
    """The exported contest, which runs, with one participant."""
    start = datetime.now(UTC) - timedelta(minutes=30)
    name = exporter.create_contest(CONTEST.format(start=start.isoformat(timespec="seconds")))
    packages = {title: _package(title) for title in ("adding", "joining")}
    messages = exporter.export(name, b"%PDF-1.7 all problems", PROBLEMS, packages)
    assert ["Problem A has revision 2" in lines[-1] for lines in messages] == [True, False]
    with installation.client("jury") as jury:
        changed = jury.patch(f"/api/v1/contests/{name}", json={"printing_enabled": True})
        assert changed.status_code == 200, changed.text
        published = jury.post(f"/api/v1/contests/{name}:publish")
        assert published.is_success, published.text
    with installation.client("team1") as team:
        assert team.post(f"/api/v1/contests/{name}:register", json={}).status_code == 201
    return name


@pytest.fixture
def submit(installation: Installation, contest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SubmitProgram:
    """The program of the team, with its password in a netrc file."""
    netrc = tmp_path / "netrc"
    host = urlsplit(installation.url).hostname
    netrc.write_text(f'machine {host} login team1 password "{PASSWORD}"\n')
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    return SubmitProgram(installation.url, contest)


def test_an_exported_contest_has_its_problems_and_problem_set(
    installation: Installation, exporter: ExportProgram, contest: str
) -> None:
    found = {item["id"]: item for item in exporter.get(f"/contests/{contest}/problems")}
    assert {label: (item["externalid"], item["short_name"], item["name"]) for label, item in found.items()} == {
        "A": ("adding", "A", "Adding"),
        "B": ("joining", "B", "Joining"),
    }
    assert (found["A"]["rgb"], "rgb" in found["B"], found["A"]["test_data_count"]) == ("#000000", False, 2)
    about = exporter.get(f"/contests/{contest}/")
    assert about == exporter.get(f"/contests/{contest}")
    assert (about["id"], about["shortname"], about["duration"]) == ("dpc", "dpc", "5:00:00.000")
    with installation.client("team1") as team:
        assert team.get(f"/api/v1/contests/{contest}/materials/problemset.pdf").content == b"%PDF-1.7 all problems"
    again = exporter.upload(contest, "adding", zip_files(icpc_package(title="Adding")), [*found.values()])
    assert "revision 3 of adding" in again[-1]


def test_the_submit_program_works_unchanged(submit: SubmitProgram, contest: str, tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text(RIGHT)
    made = submit.submit(source)
    assert submit.calls == [
        "GET contests",
        f"GET contests/{contest}/languages",
        f"GET contests/{contest}/problems",
        f"POST contests/{contest}/submissions",
    ]
    assert (made["problem_id"], made["id"].isdecimal()) == ("A", True)
    java = tmp_path / "B.java"
    java.write_text(JAVA.format(name="B"))
    helper = tmp_path / "Helper.java"
    helper.write_text("class Helper {}\n")
    assert submit.submit(java, helper)["language_id"].startswith("java")
    wrong = tmp_path / "b.cpp"
    wrong.write_text("int main() {}\n")
    assert submit.submit(wrong)["problem_id"] == "B"
    empty = tmp_path / "c" / "a.py"
    empty.parent.mkdir()
    empty.write_text("")
    with pytest.raises(ClientFailure, match=r"code 400: .*must not be empty"):
        submit.submit(empty)


@pytest.mark.usefixtures("contest")
def test_without_a_package_no_submission_is_judged(installation: Installation, exporter: ExportProgram) -> None:
    start = (datetime.now(UTC) - timedelta(minutes=1)).isoformat(timespec="seconds")
    name = exporter.create_contest(f"id: empty\nname: Empty\nstart_time: {start}\nduration: 1:00:00\n")
    data = {"data": ("problems.yaml", "- {id: missing, label: A, name: Missing}", "application/x-yaml")}
    assert exporter.call("POST", f"/contests/{name}/problems/add-data", files=data).json() == ["A"]
    with installation.client("jury") as jury, installation.client("team1") as team:
        problems = f"/api/v1/contests/{name}/problems"
        refused = jury.post(f"/api/v1/contests/{name}:publish")
        assert (refused.status_code, "the packages of A are not uploaded yet" in refused.json()["detail"]) == (
            400,
            True,
        )
        assert jury.put(problems, json={"problems": [{"problem": "adding", "label": "B"}]}).is_success
        assert jury.post(f"/api/v1/contests/{name}:publish").is_success
        both = {"problems": [{"problem": "missing", "label": "A"}, {"problem": "adding", "label": "B"}]}
        opened = jury.put(problems, json=both)
        assert opened.json()["items"][0]["accepts"], "an organiser opened it by mistake"
        assert team.post(f"/api/v1/contests/{name}:register", json={}).status_code == 201
        body = {"contest": name, "problem": "A", "language": "python3", "source": RIGHT}
        sent = team.post("/api/v1/submissions", json=body).json()["submission_id"]
        ended = installation.wait_until(f"/api/v1/submissions/{sent}", lambda it: it["finished_at"] is not None)
        assert ended["verdict"] == "SE", "never accepted"
        assert jury.post(f"/api/v1/contests/{name}:cancel", json={"reason": "a test"}).is_success


def test_the_submit_program_prints(submit: SubmitProgram, tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text(RIGHT)
    assert "of contest dpc" in submit.print_file(source)["output"]
    assert submit.calls[-1] == "POST printing/team"


def test_wrong_credentials_are_401_with_json(submit: SubmitProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    response = requests.get(f"{submit.base_url}/api/contests", auth=("team1", "wrong"), timeout=30)
    assert (response.status_code, response.json()["code"]) == (401, 401)
    monkeypatch.setenv("NETRC", "/nonexistent")
    assert [item["id"] for item in requests.get(f"{submit.base_url}/api/contests", timeout=30).json()] == ["dpc"]


def test_statistics_and_downloads_of_submissions(
    exporter: ExportProgram, submit: SubmitProgram, contest: str, tmp_path: Path
) -> None:
    source = tmp_path / "b.py"
    source.write_text(RIGHT)
    number = submit.submit(source)["id"]
    until = time.monotonic() + 120
    while True:
        judgements = exporter.get(f"/contests/{contest}/judgements")
        if all("end_time" in item for item in judgements) and number in {item["submission_id"] for item in judgements}:
            break
        assert time.monotonic() < until
        time.sleep(0.1)
    found = exporter.read_activity(contest)
    assert found[number]["judgement"]["judgement_type_id"] == "AC"
    assert exporter.download(contest)[f"B/{number}.py"] == RIGHT.encode()
