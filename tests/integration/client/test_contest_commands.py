"""``adjudge contest`` against a real server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from adjudge.cli.connection import open_client
from adjudge.domain.timestamps import format_timestamp, parse_timestamp
from tests.support.contest_cli import log_in, run, shown
from tests.support.http_server import RunningServer
from tests.support.published_problem import PublishedProblem

pytestmark = pytest.mark.slow
HOUR_US = 3_600_000_000


def test_settings_problems_roles_and_copies(contest: str, tmp_path: Path) -> None:
    found = shown("show", contest)
    assert (found["settings"]["format_cfg"], found["settings"]["freeze_after_sec"]) == ({"penalty_minutes": 10}, 14_400)
    assert found["starts_at"] == "2100-01-31T12:00:00.000Z"
    text = run("show", contest).output
    assert all(word in text for word in ("Spring Contest", "5h", "4h", "penalty_minutes"))

    options = ("--duration", "1h30m", "--clear", "freeze_after", "--language", "c", "--no-allows-teams", "--rated")
    settings = shown("edit", contest, "--title", "New", "--format-cfg", "{}", *options)["settings"]
    assert (settings["duration_sec"], settings["freeze_after_sec"], settings["rated"]) == (5_400, None, True)
    assert (settings["allowed_languages"], settings["allows_teams"]) == (["c"], False)
    stale = run("edit", contest, "--title", "Other", "--expect-version", str(found["version"]))
    assert (stale.exit_code, "VERSION_CONFLICT" in stale.stderr) == (3, True)
    assert [(item["slug"], item["title"]) for item in shown("list")] == [(contest, "New")]

    (problem,) = shown("problems", "list", contest)
    assert (problem["label"], problem["points"], problem["closes_after_sec"]) == ("S", 50, 7_200)
    assert [item["label"] for item in shown("problems", "set", contest, "Z=sum")] == ["Z"]
    unknown = run("problems", "set", contest, "sum", "none")
    assert (unknown.exit_code, "problems[1].problem" in unknown.stderr) == (3, True)

    assert run("role", "grant", contest, "bob", "judge").exit_code == 0
    roles = {(item["user_name"], item["role"]) for item in shown("role", "list", contest)}
    assert roles == {("ada", "organiser"), ("bob", "judge")}
    assert run("role", "revoke", contest, "bob", "judge").exit_code == 0
    assert len(shown("role", "list", contest)) == 1

    copy = shown("clone", contest, "autumn", "--title", "Autumn")
    assert (copy["slug"], copy["title"], copy["starts_at"], copy["settings"]["rated"]) == (
        "autumn",
        "Autumn",
        None,
        True,
    )
    (tmp_path / "naive.yaml").write_text("starts_at: 2100-01-31T12:00:00")
    naive = run("edit", contest, "--file", str(tmp_path / "naive.yaml"))
    assert (naive.exit_code, "has no time zone" in naive.stderr) == (3, True)


def test_lifecycle(contest: str) -> None:
    assert shown("publish", contest)["state"] == "published"
    assert shown("unpublish", contest, "--reason", "too early")["state"] == "draft"
    assert shown("publish", contest)["phase"] == "before"
    assert shown("countdown", "pause", contest)["countdown_pause_sec"] > 0
    assert shown("countdown", "resume", contest)["countdown_pause_sec"] is None
    now_us = parse_timestamp(shown("start", contest)["starts_at"], "starts_at")
    start, minute_10 = format_timestamp(now_us - HOUR_US), format_timestamp(now_us - HOUR_US + HOUR_US // 6)
    assert shown("start", contest, "--at", start)["phase"] == "running"
    assert shown("pause", contest, "--reason", "power failure")["is_paused"]
    assert not shown("resume", contest)["is_paused"]
    removed = shown("interval", "remove", contest, "--from", start, "--to", minute_10, "--reason", "no power")
    assert removed["contest_time_sec"] == 3_000
    interval = next(item for item in shown("interval", "list", contest) if item["reason"] == "no power")
    assert shown("interval", "undo", contest, interval["id"])["contest_time_sec"] == 3_600
    future = run("interval", "remove", contest, "--from", start, "--to", "2100-01-01T00:00:00Z")
    assert (future.exit_code, "to_at" in future.stderr) == (3, True)
    assert shown("freeze", contest)["phase"] == "frozen"
    assert shown("extend", contest, "--by", "10m", "--reason", "late start")["settings"]["duration_sec"] == 18_600

    blocked = run("finalize", contest)
    assert (blocked.exit_code, "has not ended" in blocked.stderr) == (3, True)
    assert run("edit", contest, "--clear", "freeze_after").exit_code == 0
    assert shown("end", contest, "--reason", "all have left")["phase"] == "ended"
    twice = run("end", contest)
    assert (twice.exit_code, "is not running" in twice.stderr) == (3, True)
    assert shown("finalize", contest)["state"] == "finalized"
    assert shown("reopen", contest, "--reason", "a protest")["state"] == "published"
    assert shown("finalize", contest)["state"] == "finalized"
    early = run("close-updates", contest)
    assert (early.exit_code, "thaw it first" in early.stderr) == (3, True)
    assert shown("thaw", contest)["phase"] == "thawed"
    assert shown("close-updates", contest)["end_of_updates_at"] is not None
    states = [item["to_state"] for item in shown("log", contest)]
    assert states == ["published", "draft", "published", "finalized", "published", "finalized"]


def test_canceled_contest_stays_canceled(contest: str) -> None:
    assert run("publish", contest).exit_code == 0
    assert shown("cancel", contest, "--reason", "no rooms")["state"] == "canceled"
    again = run("publish", contest)
    assert (again.exit_code, "canceled" in again.stderr) == (3, True)


def test_clarifications_are_asked_answered_and_announced(contest: str, server: RunningServer) -> None:
    for command in (("publish", contest), ("participants", "add", contest, "--user", "bob", "--code", "bob")):
        assert run(*command).exit_code == 0
    assert run("start", contest).exit_code == 0
    log_in(server, "bob")
    asked = shown("clarifications", "ask", contest, "May n be 0?", "--problem", "S")
    assert (asked["number"], asked["audience"], asked["problem"]) == (1, "jury", "S")
    unknown = run("clarifications", "ask", contest, "?", "--problem", "Q")
    assert (unknown.exit_code, "there is no problem 'Q'" in unknown.stderr) == (3, True)
    forbidden = run("clarifications", "announce", contest, "I won.")
    assert forbidden.exit_code == 3
    log_in(server, "ada")
    assert [item["number"] for item in shown("clarifications", "list", contest, "--open")] == [1]
    assert run("clarifications", "claim", contest, "1").output == "1: claimed by ada\n"
    assert "claimed by ada" in run("clarifications", "list", contest).output
    assert run("clarifications", "answer", contest, "1", "No.").output == "2: sent to bob\n"
    assert shown("clarifications", "list", contest, "--open") == []
    missing = run("clarifications", "answer", contest, "9", "No.")
    assert (missing.exit_code, "no clarification 9" in missing.stderr) == (3, True)
    assert run("clarifications", "announce", contest, "Lunch.").output == "3: sent to all\n"
    both = run("clarifications", "announce", contest, "x", "--participant", "bob", "--group", "g")
    assert (both.exit_code, "give one of them" in both.stderr) == (3, True)
    log_in(server, "bob")
    seen = shown("clarifications", "list", contest, "--mark-read")
    assert [(item["number"], item["body"], item["reply_to"]) for item in seen] == [
        (3, "Lunch.", None),
        (2, "No.", 1),
        (1, "May n be 0?", None),
    ]
    assert not any(item["is_unread"] for item in shown("clarifications", "list", contest))


def test_simulation_names_what_to_fix(contest: str, server: RunningServer, tmp_path: Path) -> None:
    for slug in ("sum", "other"):
        folder = tmp_path / "packages" / slug / "submissions" / "accepted"
        folder.mkdir(parents=True)
        (folder / "right.py").write_text("print(1)")
    simulate = ("simulate", "rehearsal", "--teams", "2", "--problems", str(tmp_path / "packages"))
    missing = run(*simulate)
    assert (missing.exit_code, "other not published" in missing.stderr) == (3, True)
    unknown = run(*simulate, "--resume")
    assert (unknown.exit_code, "NOT_FOUND" in unknown.stderr) == (3, True)
    waiting = run("simulate", contest, *simulate[2:], "--resume")
    assert (waiting.exit_code, "spring is not running (draft)" in waiting.stderr) == (3, True)
    both = run(*simulate, "--rate", "2", "--duration", "5")
    assert (both.exit_code, "--rate and --duration" in both.stderr) == (3, True)
    taken = run("simulate", contest, *simulate[2:], "--problem", "sum")
    assert (taken.exit_code, "Nothing was created" in taken.stderr) == (3, True)
    log_in(server, "bob")
    forbidden = run(*simulate, "--problem", "sum")
    assert (forbidden.exit_code, "FORBIDDEN" in forbidden.stderr) == (3, True)
    assert "Nothing was created on the server." in forbidden.stderr


def test_print_server_takes_jobs_once_and_puts_failed_ones_back(
    contest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown("edit", contest, "--printing-enabled")
    for command in ("publish", "start"):
        shown(command, contest)
    source, folder = tmp_path / "main.cpp", tmp_path / "spool"
    source.write_text("int main() {}\n")
    folder.mkdir()
    sent = run("prints", "send", contest, str(source))
    assert sent.output == "Print job 1: 1 pages\n"
    with monkeypatch.context() as patched:

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        patched.setattr(Path, "write_bytes", full)
        assert run("prints", "take", contest, "--folder", str(folder)).exit_code != 0
    assert [item["state"] for item in shown("prints", "list", contest)] == ["pending"]
    taken = run("prints", "take", contest, "--folder", str(folder))
    assert taken.output.split() == [str(folder / "0001-staff.txt")]
    assert (folder / "0001-staff.txt").read_text() == "#1  ada  main.cpp  1/1\n\nint main() {}\n\f"
    assert run("prints", "take", contest, "--folder", str(folder)).output == ""
    assert run("prints", "done", contest, "1").output == "1: done\n"
    assert run("prints", "done", contest, "1", "--undo").output == "1: pending\n"

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", stop)
    followed = run("prints", "take", contest, "--folder", str(folder), "--follow", "--done")
    assert "0001-staff.txt" in followed.output
    assert [item["state"] for item in shown("prints", "list", contest, "--state", "all")] == ["done"]
    assert sorted(path.name for path in folder.iterdir()) == ["0001-staff.txt"]


def test_balloons_are_delivered(contest: str, server: RunningServer, published: PublishedProblem) -> None:
    shown("edit", contest, "--balloons-enabled")
    for command in ("publish", "start"):
        shown(command, contest)
    with open_client(None) as client:
        client.contest_register(contest)
        made = client.submit("S", "cpp", "int main() {}", contest=contest)
    server.do(published.finish(made.job_id))
    (item,) = shown("balloons", "list", contest)
    assert (item["problem"], item["color"], item["total"]) == ("S", "red", 1)
    delivered = run("balloons", "deliver", contest, item["participant"], "S")
    assert delivered.output == f"{item['participant']} S: delivered\n"
    assert shown("balloons", "list", contest) == []
    assert run("balloons", "collect", contest, item["participant"], "S").exit_code != 0
    assert run("balloons", "deliver", contest, item["participant"], "S", "--undo").output.endswith("waiting\n")
