"""The commands of a contest's jury, of its materials and of its participants, against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.cli.connection import open_client
from adjudge.domain.timestamps import format_timestamp, parse_timestamp
from adjudge.domain.verdict import Verdict
from tests.support.contest_cli import log_in, run, shown
from tests.support.http_server import RunningServer
from tests.support.published_problem import PublishedProblem

pytestmark = pytest.mark.slow
HOUR_US = 3_600_000_000


def count_on_scoreboard(contest: str) -> tuple[int, int]:
    """The solved problems and the penalty in minutes of the first row, in the view of the jury."""
    (row,) = shown("scoreboard", contest, "--jury")["rows"]
    return row["solved"], (row["penalty_sec"] or 0) // 60


def submit(server: RunningServer, published: PublishedProblem, contest: str, verdict: Verdict | None) -> str:
    """Submit as bob; with ``verdict``, it is judged. Return the judge run."""
    log_in(server, "bob")
    with open_client(None) as client:
        made = client.submit("S", "cpp", "int main() {}", contest=contest)
    if verdict is not None:
        server.do(published.finish(made.job_id, verdict))
    log_in(server, "ada")
    return made.job_id


def test_jury_verifies_overrides_ignores_and_adds_penalties(
    contest: str, server: RunningServer, published: PublishedProblem
) -> None:
    for command in (("edit", contest, "--verify-required"), ("publish", contest), ("start", contest)):
        assert run(*command).exit_code == 0
    assert run("participants", "add", contest, "--user", "bob", "--code", "bob").exit_code == 0
    submit(server, published, contest, Verdict.WA)
    submit(server, published, contest, Verdict.AC)
    submit(server, published, contest, None)
    for options, numbers in (
        ((), [3, 2, 1]),
        (("--verdict", "WA"), [1]),
        (("--waiting",), [3]),
        (("--unverified",), [2, 1]),
        (("--problem", "S", "--participant", "bob", "--language", "cpp", "--limit", "1"), [3]),
        (("--ignored",), []),
        (("--late",), []),
    ):
        assert [item["number"] for item in shown("submissions", contest, *options)] == numbers, options
    unknown = run("submissions", contest, "--verdict", "wrong")
    assert (unknown.exit_code, "'wrong' is not one of 'AC'" in unknown.stderr) == (3, True)

    assert count_on_scoreboard(contest) == (0, 0), "it counts once it is verified"
    changed = run("verify", contest, "2", "WA")
    assert (changed.exit_code, "it is AC now" in changed.stderr) == (3, True)
    assert run("verify", contest, "2", "AC").output == "2: AC (verified)\n"
    assert count_on_scoreboard(contest) == (1, 0)
    assert run("verify", contest, "2", "none").output == "2: AC\n"
    assert count_on_scoreboard(contest) == (0, 0)
    early = run("verify", contest, "3", "AC")
    assert (early.exit_code, "has no verdict yet" in early.stderr) == (3, True)

    without = run("override", contest, "1", "AC")
    assert (without.exit_code, "--reason" in without.stderr) == (3, True)
    assert run("override", contest, "1", "AC", "--reason", "wrong answer file").output == "1: AC (overridden)\n"
    assert count_on_scoreboard(contest)[0] == 1
    assert [item["number"] for item in shown("submissions", contest, "--verdict", "AC")] == [2, 1]
    assert run("ignore", contest, "1", "--reason", "sent twice").output == "1: AC (overridden, ignored)\n"
    assert [item["number"] for item in shown("submissions", contest, "--ignored")] == [1]
    assert count_on_scoreboard(contest)[0] == 0
    assert shown("ignore", contest, "1", "--undo", "--reason", "not at all")["ignored_at"] is None
    assert count_on_scoreboard(contest)[0] == 1
    assert run("penalty", contest, "bob", "20", "--reason", "phone").output == "bob: 1200 seconds are added\n"
    assert count_on_scoreboard(contest) == (1, 20)
    assert run("penalty", contest, "bob", "0", "--reason", "not his").output == "bob: 0 seconds are added\n"
    assert count_on_scoreboard(contest) == (1, 0)
    nobody = run("penalty", contest, "eve", "20", "--reason", "phone")
    assert (nobody.exit_code, "eve" in nobody.stderr) == (3, True)
    restored = shown("override", contest, "1", "none", "--reason", "the file is right")
    assert (restored["verdict"], restored["override_verdict"]) == ("WA", None)

    log_in(server, "bob")
    for action, *rest in (("submissions",), ("verify", "2", "AC"), ("override", "1", "AC", "--reason", "please")):
        assert run(action, contest, *rest).exit_code == 3, action


def test_late_submission_is_made_official(contest: str, server: RunningServer, published: PublishedProblem) -> None:
    assert run("publish", contest).exit_code == 0
    now_us = parse_timestamp(shown("start", contest)["starts_at"], "starts_at")
    assert run("start", contest, "--at", format_timestamp(now_us - HOUR_US)).exit_code == 0
    assert run("participants", "add", contest, "--user", "bob", "--code", "bob").exit_code == 0
    submit(server, published, contest, Verdict.AC)
    assert run("edit", contest, "--clear", "freeze_after", "--duration", "30m").exit_code == 0
    assert [item["is_late"] for item in shown("submissions", contest, "--late")] == [True]
    assert count_on_scoreboard(contest)[0] == 0
    assert run("official", contest, "1", "--reason", "no network").output == "1: AC (official, late)\n"
    assert count_on_scoreboard(contest)[0] == 1
    assert not shown("official", contest, "1", "--undo", "--reason", "there was one")["official"]
    assert count_on_scoreboard(contest)[0] == 0


def test_judging_of_a_problem_is_paused_and_resumed(
    contest: str, server: RunningServer, published: PublishedProblem
) -> None:
    for command in ("publish", "start"):
        assert run(command, contest).exit_code == 0
    assert run("participants", "add", contest, "--user", "bob", "--code", "bob").exit_code == 0
    assert run("judging", contest, "S", "pause", "--reason", "wrong data").output == f"{contest} S: judging paused\n"
    assert [item["judging_paused"] for item in shown("problems", "list", contest)] == [True]
    job_id = submit(server, published, contest, None)
    assert server.do(server.api.store.claim(job_id)).done == (), "no worker gets it"
    assert run("judging", contest, "S", "resume").output == f"{contest} S: judging resumed\n"
    server.do(published.finish(job_id))
    assert count_on_scoreboard(contest)[0] == 1
    unknown = run("judging", contest, "Q", "pause")
    assert (unknown.exit_code, "'Q'" in unknown.stderr) == (3, True)


def test_participants_are_listed_by_kind(contest: str) -> None:
    for user, kind in (("bob", "official"), ("ada", "test")):
        added = run("participants", "add", contest, "--user", user, "--code", user, "--kind", kind)
        assert added.exit_code == 0, added.output
    for kind, codes in (("official", ["bob"]), ("test", ["ada"]), ("virtual", []), ("practice", [])):
        assert [item["code"] for item in shown("participants", "list", contest, "--kind", kind)] == codes, kind
    unknown = run("participants", "list", contest, "--kind", "OFFICIAL")
    assert (unknown.exit_code, "--kind" in unknown.stderr) == (3, True)


def test_materials_are_uploaded_downloaded_and_removed(contest: str, server: RunningServer, tmp_path: Path) -> None:
    rules, target = tmp_path / "rules.txt", tmp_path / "copy.txt"
    rules.write_bytes(b"no phones\n")
    assert run("materials", "add", contest, str(rules), "--title", "Rules").output.endswith("visible always\n")
    for visible in ("start", "thaw"):
        added = run("materials", "add", contest, str(rules), "--name", f"{visible}.txt", "--visible", visible)
        assert added.output == f"{visible}.txt: 10 bytes, visible {visible}\n"
    unknown = run("materials", "add", contest, str(rules), "--visible", "never")
    assert (unknown.exit_code, "--visible" in unknown.stderr) == (3, True)
    hidden = run("materials", "add", contest, str(rules), "--name", ".rules")
    assert (hidden.exit_code, "name:" in hidden.stderr) == (3, True)
    listed = [(item["name"], item["title"], item["visible"]) for item in shown("materials", "list", contest)]
    assert listed == [("rules.txt", "Rules", "always"), ("start.txt", "", "start"), ("thaw.txt", "", "thaw")]
    assert "rules.txt" in run("materials", "list", contest).output

    assert run("publish", contest).exit_code == 0
    log_in(server, "bob")
    assert [item["name"] for item in shown("materials", "list", contest)] == ["rules.txt"]
    assert run("materials", "download", contest, "rules.txt", "-o", str(target)).output == f"{target}\n"
    assert target.read_bytes() == b"no phones\n"
    for command in (("download", "start.txt", "-o", str(tmp_path / "no.txt")), ("remove", "rules.txt")):
        assert run("materials", command[0], contest, *command[1:]).exit_code == 3, command
    assert not (tmp_path / "no.txt").exists()

    log_in(server, "ada")
    changed = run("materials", "set", contest, "start.txt", "--visible", "always")
    assert changed.output == "start.txt: visible always\n"
    assert run("materials", "remove", contest, "rules.txt").output == "rules.txt: deleted\n"
    assert run("materials", "remove", contest, "rules.txt").exit_code == 3
    assert [item["name"] for item in shown("materials", "list", contest)] == ["start.txt", "thaw.txt"]
