"""Contest packages: reading the files of 2023-06 and 2026-01, the extension, and all findings at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.packages.archive import open_package
from adjudge.packages.contest_package.extension_file import iter_records, record_names, write_record
from adjudge.packages.contest_package.model import (
    SUBMISSIONS_FILE,
    ContestPackage,
    Extension,
    IntervalExtension,
    SubmissionRecord,
)
from adjudge.packages.contest_package.reader import read_contest_package
from adjudge.packages.contest_package.times import format_reltime, format_time, parse_penalty, parse_reltime, parse_time
from adjudge.packages.contest_package.typed_json import decode_value, encode_value
from adjudge.packages.contest_package.writer import write_documents
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings, PackageRefused, Severity
from tests.support.problem_packages import icpc_package, zip_files

MINUTE_US = 60_000_000
CONTEST = """
id: spring
name: Spring 2026
start_time: 2026-04-01T09:00:00+02
duration: 5:00:00
scoreboard_freeze_duration: 1:00:00
scoreboard_type: pass-fail
penalty_time: 20
"""
PROBLEMS = """
- {id: sum, label: A, name: A Sum, ordinal: 2, rgb: '#f00', time_limit: 1.5, test_data_count: 3}
- {id: tree, label: B, name: Trees, ordinal: 1, color: green}
"""
DIGEST = "ab" * 32


def read(folder: Path, **files: str | bytes) -> ContestPackage:
    """Read a package with these files; double underscores are slashes and single ones dots, as in ``contest_yaml``."""
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    with open_package(folder) as opened:
        return read_contest_package(opened, "folder-name")


def errors(package: ContestPackage) -> list[str]:
    return [str(item) for item in package.findings.in_order() if item.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("text", "us"),
    [("5:00:00", 300 * MINUTE_US), ("-0:00:01.5", -1_500_000), ("0:20:00.000001", 20 * MINUTE_US + 1), ("20", None)],
)
def test_relative_times(text: str, us: int | None) -> None:
    assert parse_reltime(text) == us
    if us is not None:
        assert parse_reltime(format_reltime(us)) == us


def test_times_need_a_zone_and_penalties_are_minutes_or_relative_times() -> None:
    assert parse_time("2014-06-25T10:00:00+01") == parse_time("2014-06-25T09:00:00Z")
    assert parse_time("2014-06-25T10:00:00") is None
    assert parse_time("soon") is None
    assert parse_time(format_time(1_700_000_000_000_001)) == 1_700_000_000_000_001
    assert parse_penalty("20") == parse_penalty("0:20:00") == 20 * MINUTE_US
    assert parse_penalty("-5") is None


def test_package_written_by_a_person(tmp_path: Path) -> None:
    package = read(
        tmp_path,
        contest_yaml=CONTEST,
        problems_yaml=PROBLEMS,
        teams_yaml="- {id: t1, name: One, organization_id: uni, group_ids: [north]}\n",
        groups_yaml="- {id: north, name: North}\n",
        organizations_yaml="- {id: uni, name: University}\n",
        accounts_yaml="- {id: one, username: one, type: team, team_id: t1, password: a-secret-one}\n",
    )
    assert errors(package) == []
    contest = package.contest
    assert (contest.id, contest.name, contest.duration_us) == ("spring", "Spring 2026", 300 * MINUTE_US)
    assert (contest.freeze_us, contest.penalty_us, contest.is_pass_fail) == (60 * MINUTE_US, 20 * MINUTE_US, True)
    assert contest.start_at == parse_time("2026-04-01T07:00:00Z")
    assert [(item.id, item.label, item.rgb) for item in package.problems] == [
        ("tree", "B", None),
        ("sum", "A", "#ff0000"),
    ]
    assert (package.people.teams[0].groups, package.people.accounts[0].password) == (("north",), "a-secret-one")
    assert b"a-secret-one" not in b"".join(write_documents(package).values())


def test_written_documents_are_read_back_the_same(tmp_path: Path) -> None:
    first = read(tmp_path / "a", contest_yaml=CONTEST, problems_yaml=PROBLEMS)
    extension = Extension(1, removed_intervals=(IntervalExtension(5, 7, reason="fire alarm"),))
    documents = write_documents(ContestPackage(first.contest, first.problems, first.people, extension))
    for name, data in documents.items():
        (tmp_path / "b").mkdir(exist_ok=True)
        (tmp_path / "b" / name).write_bytes(data)
    second = read(tmp_path / "b")
    assert (errors(second), second.contest, second.extension) == ([], first.contest, extension)
    assert write_documents(second) == documents


def test_names_of_2026_and_a_main_group(tmp_path: Path) -> None:
    package = read(
        tmp_path,
        contest_json=json.dumps(
            {"name": "N", "duration": "2:00:00", "penalty_time": "0:10:00.000", "main_scoreboard_group_id": "m"}
        ),
        problems_json='[{"id": "sum", "label": "A"}]',
        problems__sum__package_zip=zip_files(icpc_package()),
        groups_json='[{"id": "m", "name": "Main"}]',
        teams_json='[{"id": "1", "name": "One", "group_ids": ["m"]}, {"id": "2", "name": "Two"}]',
        teams__1__photo_png=b"\x89PNG",
    )
    assert errors(package) == []
    assert (package.contest.id, package.contest.penalty_us) == ("folder-name", 10 * MINUTE_US)
    assert package.problems[0].package == "problems/sum/package.zip"
    assert [team.hidden for team in package.people.teams] == [False, True]
    assert package.photos == {"1": "teams/1/photo.png"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("problems__sum__sum_zip", "problems/sum/sum.zip"),
        ("sum_zip", "sum.zip"),
        ("problems__sum__problem_yaml", "problems/sum/"),
        ("sum__problem_yaml", "sum/"),
        ("other_zip", None),
    ],
)
def test_places_of_problem_packages(tmp_path: Path, name: str, found: str | None) -> None:
    package = read(tmp_path, contest_yaml=CONTEST, problems_yaml="- {id: sum, label: A}\n", **{name: b"x"})
    assert package.problems[0].package == found


def test_all_errors_are_found_at_once_with_file_line_and_field(tmp_path: Path) -> None:
    package = read(
        tmp_path,
        contest_yaml="name: ''\nduration: five hours\nstart_time: tomorrow\nscoreboard_type: fun\npenalty_time: -1\n",
        problems_yaml="- {id: a, label: A, rgb: reddish}\n- {id: a, label: a}\n- 7\n- {label: C}\n",
        problems_json="[]",
        teams_yaml="- {id: '-', name: One}\n",
        adjudge_json=json.dumps(
            {
                "version": 1,
                "contest": {"state": "over", "bronze_extra": "2", "ratd": True},
                "groups": [{"ranked": True}],
            }
        ),
        adjudge__submissions_ndjson=b"",
    )
    assert errors(package) == [
        "adjudge.json: error: contest.ratd: is not a key of this format.",
        "adjudge.json: error: contest.state: must be one of draft, published, canceled, finalized.",
        "adjudge.json: error: contest.bronze_extra: must be an integer.",
        "adjudge.json: error: groups[0].id: is missing.",
        "contest.yaml:1: error: name: is missing. Add the title of the contest.",
        "contest.yaml:2: error: duration: 'five hours' is not a duration. Write h:mm:ss, for example 5:00:00.",
        (
            "contest.yaml:3: error: start_time: 'tomorrow' is not a time with a zone. "
            "Write it as 2026-01-31T12:00:00+01:00."
        ),
        "contest.yaml:4: error: scoreboard_type: 'fun' is not one of pass-fail, score.",
        "contest.yaml:5: error: penalty_time: '-1' is not a time. Write whole minutes, or h:mm:ss.",
        "problems.yaml: error: is in the package beside problems.json. Remove one of them.",
        "teams.yaml:1: error: [0].id: '-' is not an id: expected 1 to 36 letters, digits, '_', '.' or '-'.",
    ]


def test_errors_of_problems(tmp_path: Path) -> None:
    problems = "- {id: a, label: A, rgb: reddish}\n- {id: a, label: a}\n- 7\n- {label: C}\n"
    assert errors(read(tmp_path, contest_yaml=CONTEST, problems_yaml=problems)) == [
        "problems.yaml:1: error: [0].rgb: 'reddish' is not a colour. Write #rrggbb.",
        "problems.yaml:2: error: [1].id: 'a' is used twice. Give each problem its own.",
        "problems.yaml:2: error: [1].label: 'a' is used twice. Give each problem its own.",
        "problems.yaml:3: error: [2]: must be an object.",
        "problems.yaml:4: error: [3].id: is missing.",
    ]


def test_extension_must_refer_to_objects_of_the_package(tmp_path: Path) -> None:
    document = {"version": 1, "problems": [{"id": "x"}], "groups": [{"id": "y"}], "participants": [{"id": "z"}]}
    package = read(tmp_path, contest_yaml=CONTEST, adjudge_json=json.dumps(document))
    assert [item.partition(": error: ")[2] for item in errors(package)] == [
        "problems[0].id: 'x' is not in problems.json. Add it there, or remove it here.",
        "groups[0].id: 'y' is not in groups.json. Add it there, or remove it here.",
        "participants[0].id: 'z' is not in teams.json. Add it there, or remove it here.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "version: 'None' is unknown"),
        ('{"version": 2}', "version: '2' is unknown"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"version": 1, "contest": {"frozen_at": 1e400}}', "contest.frozen_at: must be an integer"),
        ('{"version": 1, "contest": {"frozen_at": 99999999999999999999}}', "contest.frozen_at: is out of range"),
        ('{"version": 1, "contest": {"description": "\\u0000"}}', "contest.description: must not contain"),
        ('{"version": 1, "problems": {}}', "problems: must be a list"),
    ],
)
def test_invalid_extensions(tmp_path: Path, text: str, message: str) -> None:
    (found,) = errors(read(tmp_path, contest_yaml=CONTEST, adjudge_json=text))
    assert message in found


def test_folder_without_a_contest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageRefused, match=r"neither contest\.json nor contest\.yaml"):
        read(tmp_path, problems_yaml=PROBLEMS)


def record(**fields: Any) -> dict[str, Any]:
    """A judged submission."""
    return {
        "number": 1,
        "team": "t1",
        "user": "one",
        "problem": "sum",
        "language": "cpp20",
        "source": DIGEST,
        "source_format": "text",
        "created_at": 5,
        "received_at": 5,
        "status": "accepted",
        "verdict": "AC",
        "finished_at": 6,
    } | fields


def records(folder: Path, lines: list[dict[str, Any] | str]) -> tuple[list[SubmissionRecord], list[str]]:
    """Read submissions; return them and the findings."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "adjudge" / "sources").mkdir(parents=True)
    (folder / "adjudge" / "sources" / DIGEST).write_text("x")
    (folder / SUBMISSIONS_FILE).write_text("".join(f"{line}\n" for line in texts))
    package = read(
        folder,
        contest_yaml=CONTEST,
        problems_yaml=PROBLEMS,
        teams_yaml="- {id: t1, name: One}\n",
        accounts_yaml="- {username: one, type: team, team_id: t1}\n",
        adjudge_json='{"version": 1}',
    )
    assert errors(package) == []
    with open_package(folder) as files:
        found = Findings()
        read_records = list(iter_records(files, record_names(package), found))
    return read_records, [f"{item.line} {item.message}" for item in found.items]


def test_submission_is_read_as_it_was_written(tmp_path: Path) -> None:
    given = record(
        subtasks={"1": 5},
        result={"cases": [{"x": 1.5}]},
        cases=[{"name": "1", "verdict": "AC", "time_ms": 1, "wall_ms": 1, "mem_kb": 1}],
    )
    (found,), findings = records(tmp_path, [given])
    assert findings == []
    assert json.loads(write_record(found)) == given


def test_errors_of_submissions_name_their_line(tmp_path: Path) -> None:
    found, findings = records(
        tmp_path,
        [
            record(team="t2", user="two", problem="no", source="0" * 64),
            record(number=2, verdict=None),
            record(number=2, status="error"),
            record(number=3, finished_at=None),
            record(number=4, override_verdict="WA"),
            record(number=5, verified_at=7),
            record(number=0),
            "{",
            record(number=9),
        ],
    )
    assert [item.number for item in found] == [9]
    assert findings[:5] == [
        "1 problem: there is no problem 'no' in the package.",
        "1 team: there is no team 't2' in the package.",
        "1 user: there is no account 'two' in the package.",
        f"1 source: there is no file adjudge/sources/{'0' * 64}.",
        "2 verdict: must be given exactly for a judged submission; the status is accepted.",
    ]
    assert [line.partition(":")[0] for line in findings[5:]] == [
        "3 number",
        "3 status",
        "4 finished_at",
        "5 overridden_at",
        "6 verified_by",
        "7 number",
        "7 number",
        "8 is not valid JSON",
    ]


def test_many_errors_of_submissions_end_the_list(tmp_path: Path) -> None:
    found, findings = records(tmp_path, ["x"] * 1_000)
    assert (found, len(findings)) == ([], 101)


def test_values_are_decoded_strictly() -> None:
    found: list[str] = []
    good = {"from_at": 1, "to_at": None, "reason": "r"}
    assert decode_value(IntervalExtension, good, lambda *args: found.append(str(args))) == IntervalExtension(
        1, reason="r"
    )
    assert decode_value(IntervalExtension, {"from_at": True}, lambda path, text: found.append(f"{path} {text}")) is None
    assert decode_value(IntervalExtension, [], lambda path, text: found.append(f"{path} {text}")) is None
    assert found == ["from_at must be an integer.", "document must be an object."]
    assert encode_value(IntervalExtension(1, reason="r")) == {"from_at": 1, "reason": "r"}


@pytest.mark.parametrize("name", ["../contest.yaml", "/etc/passwd"])
def test_names_that_leave_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "evil.zip"
    archive.write_bytes(zip_files({"contest.yaml": CONTEST.encode(), name: b"x"}))
    with pytest.raises(PackageRefused), open_package(archive) as files:
        assert isinstance(files, PackageFiles)
