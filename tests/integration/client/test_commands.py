"""The commands against a real server."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import stat
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.cli import main
from adjudge.client import Client
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.permissions import Role
from adjudge.domain.timestamps import format_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.services.users import UserSpec
from adjudge.store.engine.notify import CHANNEL_OUTBOX, Wakeup
from adjudge.store.judging.submit_batch import BatchedSubmit
from adjudge.store.ops.idempotency_keys import StoredResponse
from tests.support.contest_app import open_contest
from tests.support.http_server import RunningServer
from tests.support.problem_packages import run_pending_imports
from tests.support.published_problem import SOURCE, PublishedProblem, publish_problem
from tests.support.store_harness import NOON_US

pytestmark = pytest.mark.slow
PASSWORD = "correct horse battery"
CHAIN = """
name: night
description: By night.
dag:
  nodes:
    - {id: check, type: noop}
    - {id: left, type: noop, deps: [check]}
    - {id: right, type: noop, deps: [check]}
triggers:
  - {name: daily, kind: cron, spec: {cron: "0 3 * * *"}}
"""


def _run(*argv: str, given: str = "") -> Result:
    return CliRunner().invoke(main, list(argv), input=given)


@pytest.fixture
def published_problem(server: RunningServer) -> PublishedProblem:
    """An admin who has logged in with a password."""
    order = UserSpec("ada", Role.ADMIN, None, password=PASSWORD, must_change_password=False)
    server.do(server.api.services.users.create_user(order, actor="test"))
    answer = _run("login", server.url, "--name", "ada", given=f"{PASSWORD}\n")
    assert answer.output == f"Logged in to {server.url} as ada (admin)\n"
    return server.do(publish_problem(server.api))


def test_login_stores_a_token_readable_by_its_owner_only(
    server: RunningServer, published_problem: PublishedProblem, tmp_path: Path
) -> None:
    (kept,) = (tmp_path / "config").rglob("logins.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    token = json.loads(kept.read_text())[server.url]["token"]
    assert _run("login", server.url, "--token", "-", given=f"{token}\n").exit_code == 0
    wrong = _run("login", server.url, "--name", "ada", given="wrong\n")
    assert (wrong.exit_code, "LOGIN_FAILED" in wrong.stderr) == (3, True)
    assert _run("login", server.url, "--name", "ada", given=f"{PASSWORD}\n").exit_code == 0
    token = json.loads(kept.read_text())[server.url]["token"]
    assert _run("logout").exit_code == 0
    assert json.loads(kept.read_text()) == {}
    gone = _run("login", server.url, "--token", token)
    assert (gone.exit_code, "UNAUTHENTICATED" in gone.stderr) == (3, True), "logging out revoked it"
    assert "adjudge login" in _run("status").stderr


def test_submit_exits_with_the_code_of_the_verdict(
    server: RunningServer, published_problem: PublishedProblem, tmp_path: Path
) -> None:
    file = tmp_path / "sum.cpp"
    file.write_text(SOURCE)
    submitted = _run("submit", str(file), "--problem", "sum", "--no-wait")
    submission_id = submitted.output.strip()
    assert submitted.exit_code == 0
    listed = json.loads(_run("status", "--json").stdout)
    assert [(item["id"], item["language"], item["status"]) for item in listed] == [(submission_id, "cpp20", "pending")]
    server.do(_judge_latest(published_problem, Verdict.WA))
    shown = _run("status", submission_id)
    assert all(word in shown.output for word in ("WA", "secret", "sample", submission_id))
    number = listed[0]["number"]
    assert f"submission  #{number} ({submission_id})" in shown.output
    assert f"#{number}" in _run("status").output
    for reference in (str(number), f"#{number}"):
        assert _run("status", reference).output == shown.output
        assert _run("status", reference, "--wait").output == shown.output
    assert (_run("status", str(number + 1)).exit_code, _run("status", "#0").exit_code) == (3, 3)
    assert "sum" in _run("status").output

    code, output = _submitted_and_judged(server, published_problem, file, Verdict.AC)
    assert (code, "AC" in output, "accepted" in output) == (0, True, False), "the verdict says it, the status does not"
    assert [output.count(name) for name in ("  sample\n", "  secret\n")] == [1, 1], "each test is shown once"
    code, output = _submitted_and_judged(server, published_problem, file, Verdict.TLE)
    assert (code, "TLE" in output) == (1, True)


def test_submit_in_a_contest(server: RunningServer, published_problem: PublishedProblem, tmp_path: Path) -> None:
    store = published_problem.api.store

    async def prepare() -> None:
        async with open_contest(published_problem, starts_at=format_timestamp(NOON_US)) as contest:
            ada = await store.row("SELECT id FROM users WHERE name = 'ada'")
            for user_id in (ada["id"], published_problem.setter_id):
                await contest.join(user_id, ParticipantKind.OFFICIAL)

    server.do(prepare())
    file = tmp_path / "a.cpp"
    file.write_text("int main() {}\n")
    submitted = _run("submit", str(file), "--contest", "spring", "--problem", "A", "--no-wait")
    assert submitted.exit_code == 0, submitted.output
    (row,) = server.do(store.rows("SELECT submission_id, number FROM contest_submissions"))
    assert (row["submission_id"], row["number"]) == (submitted.output.strip(), 1)
    unknown = _run("submit", str(file), "--contest", "spring", "--problem", "B", "--no-wait")
    assert (unknown.exit_code, "contest problem 'B'" in unknown.stderr) == (3, True)
    with Client(server.url, token=published_problem.setter_token) as client:
        assert [item.label for item in client.contest_problems("spring").items] == ["A"]
        assert client.contest_problem("spring", "A").problem.slug == "sum"
        made = client.submit("A", "cpp", "int main() {}\n", contest="spring")
        assert client.submission(made.submission_id).contest_id is not None


def test_submit_several_files(server: RunningServer, published_problem: PublishedProblem, tmp_path: Path) -> None:
    contents = {"main.py": b"import lib.one\n", "lib/one.py": b"print(1)\n", "data.bin": b"\xff"}
    for name, data in contents.items():
        path = tmp_path / "solution" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    archive = shutil.make_archive(str(tmp_path / "solution"), "gztar", tmp_path / "solution")
    folder = tmp_path / "solution"
    with Client(server.url, token=published_problem.setter_token) as client:
        for files in ([folder / name for name in contents], [folder], [archive]):
            given = [str(file) for file in files]
            submitted = _run("submit", *given, "--problem", "sum", "--entry-point", "main.py", "--no-wait")
            assert submitted.exit_code == 0, submitted.output
            found = client.files(submitted.output.strip())
            assert ({file.name: file.data for file in found.items}, found.entry_point) == (contents, "main.py")
            with zipfile.ZipFile(io.BytesIO(client.archive(submitted.output.strip()))) as unpacked:
                assert {name: unpacked.read(name) for name in unpacked.namelist()} == contents
    wrong = _run("submit", str(folder), "--problem", "sum", "--entry-point", "none.py")
    assert (wrong.exit_code, "not one of the files" in wrong.stderr) == (3, True)


def _submitted_and_judged(
    server: RunningServer, published_problem: PublishedProblem, file: Path, verdict: Verdict
) -> tuple[int, str]:
    """Submit and wait, while a judge behind the server's back finds the job and gives a verdict."""
    batcher = server.api.services.submitter.batcher
    place, judging = batcher.submit, list[asyncio.Task[None]]()

    async def place_and_judge(order: BatchedSubmit) -> StoredResponse:
        placed = await place(order)
        judging.append(asyncio.create_task(_judge_latest(published_problem, verdict)))
        return placed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batcher, "submit", place_and_judge)
        answer = _run("submit", str(file), "--problem", "sum")
    return answer.exit_code, answer.output


async def _judge_latest(published_problem: PublishedProblem, verdict: Verdict) -> None:
    latest = await published_problem.api.store.row("SELECT id FROM jobs ORDER BY id DESC LIMIT 1")
    await published_problem.finish(latest["id"], verdict)


def test_error_messages(server: RunningServer, published_problem: PublishedProblem, tmp_path: Path) -> None:
    file = tmp_path / "sum.xyz"
    file.write_text(SOURCE)
    for argv, code, said in [
        (["submit", str(file), "--problem", "sum"], 3, "use --language with one of"),
        (["submit", str(file), "--problem", "none", "--language", "cpp"], 3, "PROBLEM_NOT_FOUND"),
        (["submit", str(tmp_path / "gone.cpp"), "--problem", "sum"], 3, "no such file"),
        (["status", "nothing"], 3, "SUBMISSION_NOT_FOUND"),
        (["status", "--server", "http://127.0.0.1:9"], 3, "adjudge login http://127.0.0.1:9"),
        (["login", "ftp://example.org", "--token", "x"], 3, "invalid server URL"),
    ]:
        answer = _run(*argv)
        assert (answer.exit_code, said in answer.stderr) == (code, True), answer.output


def test_problems_are_listed_and_shown(server: RunningServer, published_problem: PublishedProblem) -> None:
    assert "sum" in _run("problem", "list").output
    assert "sum" in _run("problem", "list", "--search", "su").output
    shown = _run("problem", "view", "sum")
    assert (shown.exit_code, "1 tests" in shown.output) == (0, True)


def test_package_is_uploaded_and_followed(
    server: RunningServer, published_problem: PublishedProblem, tmp_path: Path
) -> None:
    folder = tmp_path / "echo"
    folder.mkdir()
    (folder / "1.in").write_text("1\n")
    (folder / "1.out").write_text("1\n")
    working = asyncio.run_coroutine_threadsafe(_import_all(server, tmp_path), server.loop)
    done = _run("problem", "upload", str(folder), "--tag", "easy")
    assert (done.exit_code, "imported echo, revision 1" in done.output) == (0, True), done.output
    (folder / "1.out").unlink()
    wrong = _run("problem", "upload", str(folder), "--slug", "echo")
    assert (wrong.exit_code, "1.in" in wrong.output, "failed" in wrong.output) == (1, True, True), wrong.output
    working.cancel()
    (tmp_path / "no.zip").write_bytes(b"nothing")
    refused = _run("problem", "upload", str(tmp_path / "no.zip"))
    assert (refused.exit_code, "INVALID_INPUT" in refused.stderr) == (3, True)


async def _import_all(server: RunningServer, folder: Path) -> None:
    """Carry imports out as they come, as a worker would."""
    wakeup = Wakeup()
    server.api.store.database.listen(CHANNEL_OUTBOX, wakeup.set)
    while True:
        wakeup.clear()
        await run_pending_imports(server.api, folder)
        await wakeup.wait(1_000)


def test_chain_commands(server: RunningServer, published_problem: PublishedProblem, tmp_path: Path) -> None:
    file = tmp_path / "night.yaml"
    file.write_text(CHAIN)
    assert _run("chain", "apply", str(file)).output == "night: created, version 1\n  trigger daily: created\n"
    assert "night: unchanged" in _run("chain", "apply", str(file)).output
    assert "problem-pipeline: created" in _run("chain", "apply", "--builtin", "problem-pipeline").output
    assert all(name in _run("chain", "list").output for name in ("night", "problem-pipeline"))
    shown = _run("chain", "show", "night").output
    assert all(word in shown for word in ("By night.", "0 3 * * *", "│ check │", "│ right │"))
    run_id = _run("chain", "start", "night", "--param", "n=1", "--param", "who=ada").output.strip()
    assert run_id in _run("chain", "runs", "--chain", "night").output
    assert "pending" in _run("chain", "graph", "--run", run_id).output
    assert "night#1" in _run("chain", "runs", "--chain", "night").output
    assert "pending" in _run("chain", "graph", "--run", "night#1").output
    assert _run("chain", "run", "night#1").output == _run("chain", "run", run_id).output
    assert _run("chain", "run", "night#2").exit_code == 3
    assert _run("chain", "stop", "night#1").output == "night#1: stopped\n"
    followed = _run("chain", "run", run_id, "--follow")
    assert (followed.exit_code, f"stopped night#1 {run_id}" in followed.output) == (1, True)
    assert _run("chain", "complete", run_id, "check", "--artifact", "{").exit_code == 3
    for node_id in ("left", "right", "check"):
        assert f"{node_id}: success" in _run("chain", "complete", "night#1", node_id).output
    assert _run("chain", "run", run_id, "--follow").exit_code == 0
    assert _run("chain", "retry", run_id, "left").exit_code == 3, "it has succeeded"
    assert _run("chain", "approve", run_id, "left", "--reason", "x").exit_code == 3, "it asks nothing"
    assert "success" in _run("chain", "run", run_id).output
    for wanted, state in (("disable", "disabled"), ("enable", "enabled")):
        assert _run("chain", wanted, "night").output == f"night: {state}\n"
        assert _run("chain", "start", "night").exit_code == (3 if state == "disabled" else 0)


def test_files_of_runs_are_uploaded_and_downloaded(
    server: RunningServer, published_problem: PublishedProblem, tmp_path: Path
) -> None:
    chain, given, fetched = tmp_path / "night.yaml", tmp_path / "given.zip", tmp_path / "fetched"
    chain.write_text(CHAIN)
    given.write_bytes(bytes(range(256)))
    _run("chain", "apply", str(chain))
    started = _run("chain", "start", "night", "--param", "n=1", "--file", f"package={given}")
    run_id, digest = started.output.strip(), sha256(given.read_bytes()).hexdigest()
    (row,) = server.do(published_problem.api.store.rows(f"SELECT parameters FROM chain_runs WHERE id = '{run_id}'"))
    assert json.loads(row["parameters"]) == {"n": 1, "package": digest}
    left = json.dumps({"collected": {"out.txt": {"digest": digest, "size_bytes": 256}}})
    _run("chain", "stop", run_id)
    assert _run("chain", "complete", run_id, "check", "--artifact", left).exit_code == 0
    assert json.loads(_run("chain", "artifact", run_id, "check").output) == json.loads(left)
    assert _run("chain", "artifact", run_id, "check", "--file", digest, "--output", str(fetched)).exit_code == 0
    assert fetched.read_bytes() == given.read_bytes()
    assert _run("chain", "artifact", run_id, "check", "--file", "0" * 64).exit_code == 3, "it names no such file"
    wrongs = (("package", "expected KEY="), (f"package={tmp_path}/none", "No such file"), (f"n={given}", "also set by"))
    for wrong, said in wrongs:
        refused = _run("chain", "start", "night", "--param", "n=1", "--file", wrong)
        assert (refused.exit_code, said in refused.output) == (3, True)


def test_node_log_is_followed(server: RunningServer, published_problem: PublishedProblem, tmp_path: Path) -> None:
    file = tmp_path / "night.yaml"
    file.write_text(CHAIN)
    _run("chain", "apply", str(file))
    run_id = _run("chain", "start", "night").output.strip()
    assert _run("chain", "logs", run_id, "check").output == ""
    server.do(_write(published_problem, run_id, "half way", "öäü done"))
    assert _run("chain", "logs", run_id, "check").output == "half way\nöäü done\n"
    _run("chain", "stop", run_id)
    assert _run("chain", "logs", run_id, "check", "--follow").output == "half way\nöäü done\n"
    assert _run("chain", "logs", run_id, "nothing").exit_code == 3


async def _write(published_problem: PublishedProblem, run_id: str, *texts: str) -> None:
    """Write lines, as the node's worker would."""
    sql = "INSERT INTO chain_node_logs (run_id, node_id, attempt, text, at) VALUES (:run_id, 'check', 1, :text, 1)"
    for text in texts:
        await published_problem.api.store.write(sql, run_id=run_id, text=text)


def test_rejudge_commands(server: RunningServer, published_problem: PublishedProblem, tmp_path: Path) -> None:
    file = tmp_path / "sum.cpp"
    file.write_text(SOURCE)
    submission_id = _run("submit", str(file), "--problem", "sum", "--no-wait").output.strip()
    server.do(_judge_latest(published_problem, Verdict.WA))
    assert _run("rejudge", "create", "--reason", "x").exit_code == 3, "nothing is chosen"
    batch_id = _run("rejudge", "create", "--problem", "sum", "--reason", "test 7 was wrong").output.strip()
    assert "running, 0 of 1 judged" in _run("rejudge", "show", batch_id).output
    server.do(_judge_latest(published_problem, Verdict.AC))
    shown = _run("rejudge", "show", batch_id, "--wait").output
    number = json.loads(_run("status", submission_id, "--json").stdout)[0]["number"]
    assert all(word in shown for word in ("#1: ready, 1 of 1 judged", "1: WA → AC", f"#{number}"))
    assert _run("rejudge", "show", "1").output == shown
    assert all(word in _run("rejudge", "list").output for word in ("ready", "test 7 was wrong"))
    assert "#1: applied; 1 changed, 0 kept, 0 skipped" in _run("rejudge", "apply", "#1").output
    assert "AC" in _run("status", submission_id).output
    for called, ending, state in (("#2", "discard", "discarded"), ("#3", "cancel", "canceled")):
        made = _run("rejudge", "create", f"#{number}", "--reason", "once more").output.strip()
        if ending == "discard":
            server.do(_judge_latest(published_problem, Verdict.WA))
        assert f"{called}: {state}" in _run("rejudge", ending, made, "--reason", "no").output
    assert _run("rejudge", "apply", batch_id).exit_code == 3, "it was applied"


def test_errors_of_a_chain_are_printed_line_by_line(
    server: RunningServer, published_problem: PublishedProblem, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\ndag:\n  nodes:\n    - {id: a, type: noop, deps: [b]}\n    - {id: a, type: noop}\n")
    answer = _run("chain", "apply", str(file))
    assert answer.exit_code == 3
    assert [line for line in answer.stderr.splitlines() if "unknown dependency" in line or "duplicate id" in line] == [
        f"{file}: node 'a': duplicate id: 2 nodes have it; rename all but one",
        f"{file}: node 'a': unknown dependency 'b': no node has that id",
    ]
    file.write_text("name: bad\ndag:\n  nodes:\n    - {id: a, type: nothing}\n    - {id: b, type: nothing}\n")
    answer = _run("chain", "apply", str(file))
    assert (answer.exit_code, answer.stderr.count("dag: node ")) == (3, 2), answer.stderr
    file.write_text("name: [\n")
    answer = _run("chain", "apply", str(file))
    assert (answer.exit_code, f"{file}:" in answer.stderr) == (3, True)
