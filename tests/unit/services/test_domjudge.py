"""Endpoints of DOMjudge: problems and contests from files, packages, the problem set, sources, printing, accounts."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.verdict import Verdict
from adjudge.services import domjudge_problems
from tests.support.asgi_app import make_app
from tests.support.contest_app import ContestApp, open_contest, succeeded
from tests.support.problem_packages import icpc_package, run_pending_imports, zip_files
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.store_harness import StoreHarness

ROOT = "/api/v4"
SPRING = f"{ROOT}/contests/spring"
PROBLEMS = """
- id: sum
  label: A
  name: Sum
  rgb: '#000000'
  time_limit: 1.0
- id: fresh
  label: B
  name: {en: Fresh, nl: Vers}
  rgb: '#000000'
- {id: Other Name, label: C, rgb: '#f00', color: red, name: Other}
"""


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour; its organiser is a setter."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        yield found


def listed(text: str = PROBLEMS, name: str = "problems.yaml") -> dict[str, Any]:
    return {"data": (name, text, "application/x-yaml")}


async def add_data(client: httpx.AsyncClient, text: str = PROBLEMS) -> httpx.Response:
    return await client.post(f"{SPRING}/problems/add-data", files=listed(text))


async def problems_of(contest: ContestApp) -> list[dict[str, Any]]:
    found = await succeeded(await contest.organiser.get("/api/v1/contests/spring/problems"))
    return [dict(item) for item in found["items"]]


async def upload(contest: ContestApp, name: str, folder: Path, **form: str) -> httpx.Response:
    """Upload a package while a worker imports it."""
    files = {"zip": (f"{name}.zip", zip_files(icpc_package(title=name.title())))}
    sent = asyncio.create_task(contest.organiser.post(f"{SPRING}/problems", data=form, files=files))
    while not sent.done():
        await run_pending_imports(contest.published.api, folder)
        await asyncio.sleep(0.01)
    return await sent


async def test_listed_problems_get_labels_and_colours_and_wait_for_their_packages(contest: ContestApp) -> None:
    added = await add_data(contest.organiser)
    assert (added.status_code, added.json()) == (200, ["A", "B", "C"])
    rows = {item["label"]: item for item in await problems_of(contest)}
    assert {label: (row["slug"], row["rgb"], row["accepts"]) for label, row in rows.items()} == {
        "A": ("sum", "#000000", True),
        "B": ("fresh", None, False),
        "C": ("other-name", "#ff0000", False),
    }
    assert (rows["B"]["title"], rows["C"]["color"]) == ("Fresh", "red")
    again = await add_data(contest.organiser, "- {id: fresh, label: Z}")
    assert again.json() == ["Z"]
    assert [item["label"] for item in await problems_of(contest)] == ["A", "Z", "C"]
    await contest.advance_hours(1.5)
    async with contest.participant() as team:
        refused = await contest.submit(team, problem="Z")
        assert refused.status_code == 409, "without a package nothing can be judged"


async def test_problems_without_packages_are_shown_and_exported(contest: ContestApp) -> None:
    await add_data(contest.organiser)
    detail = await succeeded(await contest.organiser.get("/api/v1/contests/spring/problems/B"))
    assert (detail["title"], detail["problem"]["samples"]) == ("Fresh", [])
    for path in ("/problems/fresh", "/problems/fresh/revisions/1", "/problems/fresh/state"):
        await succeeded(await contest.organiser.get(f"/api/v1{path}"))
    exported = await contest.organiser.get("/api/v1/contests/spring/package")
    with zipfile.ZipFile(io.BytesIO(exported.content)) as archive:
        assert [item["label"] for item in json.loads(archive.read("problems.json"))] == ["A", "B", "C"]


async def test_a_package_replaces_the_revision_in_the_contest(contest: ContestApp, tmp_path: Path) -> None:
    await add_data(contest.organiser)
    answer = await upload(contest, "fresh", tmp_path, problem="B")
    assert answer.status_code == 200, answer.text
    assert answer.json()["problem_id"] == "B"
    assert any("revision 2 of fresh" in line for line in answer.json()["messages"])
    row = next(item for item in await problems_of(contest) if item["label"] == "B")
    assert (row["slug"], row["revision"], row["accepts"]) == ("fresh", 2, True)
    by_name = await upload(contest, "Other Name", tmp_path)
    assert by_name.json()["problem_id"] == "C", "found by the name of the file"
    new = await upload(contest, "newest", tmp_path)
    assert (new.json()["problem_id"], [item["label"] for item in await problems_of(contest)]) == (
        "D",
        ["A", "B", "C", "D"],
    )
    closed = await contest.organiser.get("/api/v1/contests/spring/problems")
    body = {"problems": [{**item, "accepts": False} for item in _specs(closed.json()["items"])]}
    await succeeded(await contest.organiser.put("/api/v1/contests/spring/problems", json=body))
    await upload(contest, "fresh", tmp_path, problem="B")
    row = next(item for item in await problems_of(contest) if item["label"] == "B")
    assert (row["revision"], row["accepts"]) == (3, False), "what an organiser closed stays closed"
    verified = await contest.published.api.store.rows("SELECT id FROM problem_imports WHERE purpose = 'verify'")
    assert len(verified) == 4, "jury solutions are judged after each upload"


def _specs(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"problem": item["slug"], "label": item["label"]} for item in items]


async def test_broken_packages_change_nothing_and_name_their_errors(
    contest: ContestApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_data(contest.organiser)
    before = await problems_of(contest)
    broken = {"problem.yaml": b"problem_format_version: '2025-09'\nname: 1\nuuid: x\n"}
    sent = asyncio.create_task(
        contest.organiser.post(f"{SPRING}/problems", files={"zip": ("fresh.zip", zip_files(broken))})
    )
    while not sent.done():
        await run_pending_imports(contest.published.api, tmp_path)
        await asyncio.sleep(0.01)
    answer = (await sent).json()
    assert answer["code"] == 400
    assert "data/secret: error: has no tests" in answer["message"]
    no_archive = await contest.organiser.post(f"{SPRING}/problems", files={"zip": ("fresh.zip", b"text")})
    assert no_archive.json() == {"code": 400, "message": "package: expected a ZIP archive."}
    unknown = await contest.organiser.post(
        f"{SPRING}/problems", data={"problem": "Q"}, files={"zip": ("fresh.zip", b"PK")}
    )
    assert unknown.json()["code"] == 404
    missing = await contest.organiser.post(f"{SPRING}/problems", files={"file": ("fresh.zip", b"PK")})
    assert missing.json() == {"code": 400, "message": "zip: expected a file upload in this field."}
    monkeypatch.setattr(domjudge_problems, "IMPORT_WAIT_SEC", 0.05)
    late = await contest.organiser.post(f"{SPRING}/problems", files={"zip": ("fresh.zip", zip_files(icpc_package()))})
    assert (late.status_code, "still being imported" in late.json()["message"]) == (503, True)
    assert await problems_of(contest) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lists no problems"),
        ("[", "is not valid YAML"),
        ("a: 1", "must be a list of problems"),
        ("- 1", "[0]: must be an object"),
        ("- {id: x}", "[0].label: is missing"),
        ("- {label: x}", "[0].id: is missing"),
        ("- {id: x, label: X, rgb: blue}", "[0].rgb: 'blue' is not a colour"),
        ("- {id: x, label: A}\n- {id: y, label: A}", "problems[1].label: 'A' is used twice"),
        ("- {id: x, label: 'a b'}", "label: must match"),
    ],
)
async def test_invalid_lists_are_refused_as_a_whole(contest: ContestApp, text: str, message: str) -> None:
    answer = await add_data(contest.organiser, text)
    assert (answer.status_code, answer.json()["code"]) == (400, 400)
    assert message in answer.json()["message"]
    assert [item["slug"] for item in await problems_of(contest)] == ["sum"]
    assert await contest.published.api.store.rows("SELECT slug FROM problems WHERE slug <> 'sum'") == []


async def test_uploads_are_for_organisers_who_may_write_problems(contest: ContestApp) -> None:
    api = contest.published.api
    async with api.as_role("setter") as other, contest.participant() as team, api.client() as visitor:
        assert [(await add_data(client)).json()["code"] for client in (other, team, visitor)] == [403, 403, 401]
        pdf = {"problemset": ("contest.pdf", b"%PDF-1.7", "application/pdf")}
        archive = {"zip": ("sum.zip", zip_files(icpc_package()))}
        for path, files in ((f"{SPRING}/problemset", pdf), (f"{SPRING}/problems", archive)):
            codes = [(await client.post(path, files=files)).json()["code"] for client in (other, team, visitor)]
            assert codes == [403, 403, 401], path
        hidden = await other.post(f"{ROOT}/contests/none/problems/add-data", files=listed())
        assert hidden.json()["code"] == 404
    async with api.as_role("judge") as judge:
        name = (await judge.get("/api/v1/me")).json()["name"]
        await succeeded(
            await contest.organiser.post("/api/v1/contests/spring/roles", json={"user": name, "role": "organiser"})
        )
        refused = await add_data(judge)
        assert (refused.status_code, "problem:write" in refused.json()["message"]) == (403, True)
        assert (await add_data(judge, "- {id: sum, label: S}")).json() == ["S"], "it exists"


async def test_the_problem_set_is_shown_when_the_contest_starts(contest: ContestApp) -> None:
    files = {"problemset": ("contest.pdf", b"%PDF-1.7 first", "application/pdf")}
    assert (await contest.organiser.post(f"{SPRING}/problemset", files=files)).status_code == 204
    wrong = await contest.organiser.post(f"{SPRING}/problemset", files={"problemset": ("contest.pdf", b"%PS")})
    assert wrong.json() == {"code": 400, "message": "problemset: expected a PDF file."}
    path = "/api/v1/contests/spring/materials/problemset.pdf"
    async with contest.participant() as team:
        assert (await team.get(path)).status_code == 404
        await contest.advance_hours(1.5)
        assert (await team.get(path)).content == b"%PDF-1.7 first"


CONTEST_YAML = """
name: Autumn
formal_name: Autumn Championship
id: autumn26
start_time: 2026-10-03 10:00:00+02:00
duration: 5:00:00
scoreboard_freeze_duration: 1:00:00
penalty_time: 10
test_session: false
exists: true
"""


async def test_a_contest_file_creates_a_draft(contest: ContestApp) -> None:
    def sent(text: str) -> dict[str, Any]:
        return {"yaml": ("contest.yaml", text, "application/x-yaml")}

    made = await contest.organiser.post(f"{ROOT}/contests", files=sent(CONTEST_YAML))
    assert (made.status_code, made.json()) == (200, "autumn26")
    found = (await contest.organiser.get("/api/v1/contests/autumn26")).json()
    assert (found["title"], found["state"]) == ("Autumn Championship", "draft")
    settings = found["settings"]
    assert (settings["duration_sec"], settings["freeze_after_sec"]) == (18_000, 14_400)
    assert (found["starts_at"][:19], settings["format_cfg"]) == ("2026-10-03T08:00:00", {"penalty_minutes": 10})
    named = await contest.organiser.post(f"{ROOT}/contests", files=sent("name: Winter Cup"))
    assert named.json() == "winter-cup"
    taken = await contest.organiser.post(f"{ROOT}/contests", files=sent(CONTEST_YAML))
    assert taken.json()["code"] == 409
    for text, message in (
        ("duration: 1", "name: is missing"),
        ("name: x\nduration: long", "duration: 'long' is not a duration"),
        ("name: x\nstart_time: soon", "start_time: 'soon' is not a time"),
        ("name: x\nduration: 1:00:00\nscoreboard_freeze_duration: 2:00:00", "is longer than the contest"),
        ("[]", "must be an object"),
    ):
        refused = await contest.organiser.post(f"{ROOT}/contests", files=sent(text))
        assert (refused.status_code, message in refused.json()["message"]) == (400, True), refused.text
    async with contest.participant() as team:
        assert (await team.post(f"{ROOT}/contests", files=sent(CONTEST_YAML))).status_code == 403


async def test_sources_are_for_those_who_may_see_the_submission(contest: ContestApp) -> None:
    await contest.advance_hours(1.5)
    async with contest.participant() as team, contest.participant() as other:
        await succeeded(await contest.submit(team, source="int main() { return 1; }\n"))
        path = f"{SPRING}/submissions/1/source-code"
        for client in (team, contest.organiser):
            (file,) = await succeeded(await client.get(path))
            assert (file["submission_id"], file["filename"].rpartition(".")[2]) == ("1", "cpp")
            assert base64.b64decode(file["source"]) == b"int main() { return 1; }\n"
        assert (await other.get(path)).json()["code"] == 404
        assert (await team.get(f"{SPRING}/submissions/2/source-code")).json()["code"] == 404
        assert (await team.get(f"{SPRING}/submissions/x/source-code")).json()["code"] == 400


async def test_printing_finds_the_contest_of_the_team(contest: ContestApp) -> None:
    await contest.change(printing_enabled=True)
    form = {"original_name": "dir/a.py", "file_contents": base64.b64encode(b"print(1)\n").decode(), "language": "x"}
    async with contest.participant() as team, contest.published.api.as_role("contestant") as outside:
        early = await team.post("/api/printing/team", data=form)
        assert early.json() == {"code": 409, "message": "Printing opens when the contest starts."}
        await contest.advance_hours(1.5)
        done = await succeeded(await team.post("/api/printing/team", data=form))
        assert done == {"success": True, "output": "a.py: print job 1 of contest spring, 1 pages."}
        text = await contest.organiser.get("/api/v1/contests/spring/prints/1/text")
        assert "print(1)" in text.text
        assert (await outside.post("/api/printing/team", data=form)).json()["code"] == 403
        wrong = await team.post("/api/printing/team", data={**form, "file_contents": "%"})
        assert wrong.json() == {"code": 400, "message": "file_contents: not valid Base64."}


async def test_accounts_show_the_team(contest: ContestApp) -> None:
    async with contest.participant() as team, AsyncExitStack() as stack:
        plain = await stack.enter_async_context(contest.published.api.as_role("contestant"))
        (found,) = await succeeded(await team.get(f"{ROOT}/users"))
        assert found == await succeeded(await team.get(f"{ROOT}/user"))
        assert found["team"].startswith("Team ")
        assert found["roles"] == ["team"]
        (organiser,) = await succeeded(await contest.organiser.get(f"{ROOT}/users"))
        assert organiser["team"], "jury solutions need no team"
        assert (await succeeded(await plain.get(f"{ROOT}/users")))[0]["team"] is None
    assert json.loads((await contest.organiser.get(f"{ROOT}/version")).text) == {"api_version": 4}


def code(*names: str, text: bytes = b"int main() {}\n") -> list[tuple[str, tuple[str, bytes]]]:
    return [("code[]", (name, text)) for name in names]


async def test_forms_submit_like_json(contest: ContestApp) -> None:
    path, data = "/api/contests/spring/submissions", {"problem": "A", "language": "cpp20"}
    async with contest.participant() as team:
        early = await team.post(path, data=data, files=code("a.cpp"))
        assert early.json() == {"code": 409, "message": "The contest has not started."}
        await contest.advance_hours(1.5)
        made = await succeeded(await team.post(path, data=data, files=code("a.cpp", "b.cpp")))
        assert (made["id"], made["problem_id"], made["language_id"]) == ("1", "A", "cpp20")
        assert (made["contest_time"], made["time"][-6:]) == ("0:30:00.000", "+00:00")
        other_names = {"problem_id": "A", "language_id": "cpp20"}
        assert (await team.post(path, data=other_names, files=code("a.cpp"))).json()["id"] == "2"
        files = await succeeded(await team.get(f"{SPRING}/submissions/1/source-code"))
        assert [file["filename"] for file in files] == ["a.cpp", "b.cpp"]
        for wrong, message in (
            ({"language": "cpp20"}, "problem: missing form field."),
            ({"problem": "A"}, "language: missing form field."),
            ({**data, "id": "7"}, "id: the server sets it; leave it out."),
            ({**data, "entry_point": "Main"}, "C++20 programs have no entry point"),
            ({**data, "language": "cobol"}, "cobol"),
            ({**data, "problem": "Q"}, "Q"),
        ):
            answer = (await team.post(path, data=wrong, files=code("a.cpp"))).json()
            assert answer["code"] in {400, 404}, answer
            assert message in answer["message"]
        nothing = await team.post(path, data=data, files=[("other", ("a.cpp", b"x"))])
        assert nothing.json() == {"code": 400, "message": "code[]: missing form field."}
    async with contest.published.api.as_role("contestant") as outside:
        assert (await outside.post(path, data=data, files=code("a.cpp"))).json()["code"] == 403
    without_team = await contest.organiser.post(path, data=data, files=code("a.cpp"))
    assert "team_id" in without_team.json()["message"], "an organiser submits for a team"


@pytest.mark.parametrize(
    ("verdict", "in_domjudge", "in_general"),
    [(Verdict.AC, "AC", "AC"), (Verdict.MLE, "RTE", "MLE"), (Verdict.SE, None, "JE")],
)
async def test_judgements_are_valid_and_have_types_of_domjudge(
    contest: ContestApp, verdict: Verdict, in_domjudge: str | None, in_general: str
) -> None:
    await contest.advance_hours(1.5)
    async with contest.participant() as team:
        made = await succeeded(await contest.submit(team))
        await contest.published.finish(made["job_id"], verdict)
    (found,) = await succeeded(await contest.organiser.get(f"{SPRING}/judgements"))
    assert (found["valid"], found.get("judgement_type_id"), found["submission_id"]) == (True, in_domjudge, "1")
    (general,) = await succeeded(await contest.organiser.get("/api/contests/spring/judgements"))
    assert (general["valid"], general["judgement_type_id"]) == (True, in_general)
    assert await succeeded(await contest.organiser.get(f"{SPRING}/judgements?submission_id=2")) == []


async def test_slugs_of_problems_are_shown_with_the_problems(contest: ContestApp) -> None:
    (found,) = await succeeded(await contest.organiser.get(f"{SPRING}/problems"))
    assert (found["id"], found["short_name"], found["externalid"]) == ("A", "A", "sum")
    async with contest.participant() as team:
        assert await succeeded(await team.get(f"{SPRING}/problems")) == []


async def test_clients_work_in_contest_only_mode(contest: ContestApp) -> None:
    await contest.change(printing_enabled=True)
    await contest.advance_hours(1.5)
    async with contest.participant() as team, contest.published.api.as_role("admin") as admin:
        changed = await admin.patch("/api/v1/contests/spring", json={"contest_only": True})
        assert changed.status_code == 200, changed.text
        listed = await succeeded(await team.get("/api/contests"))
        assert [item["shortname"] for item in listed] == ["spring"]
        data = {"problem": "A", "language": "cpp20"}
        await succeeded(await team.post("/api/contests/spring/submissions", data=data, files=code("a.cpp")))
        form = {"original_name": "a.py", "file_contents": base64.b64encode(b"x").decode()}
        assert (await team.post("/api/printing/team", data=form)).status_code == 200
        assert (await team.get("/api/v4/users")).status_code == 200


async def test_the_first_language_of_an_extension_is_the_usual_one(contest: ContestApp) -> None:
    """``submit`` takes the first language that has the extension of the file."""
    found = await succeeded(await contest.organiser.get("/api/contests/spring/languages"))
    firsts: dict[str, str] = {}
    for item in found:
        for extension in (item["id"], *item["extensions"]):
            firsts.setdefault(extension, item["id"])
    known = contest.published.api.services.languages
    usual = {extension: known.get(name).id for extension, name in (("c", "c"), ("cpp", "cpp"), ("py", "python3"))}
    assert {extension: firsts[extension] for extension in usual} == usual
    assert (firsts["cc"], firsts["java"], firsts["kt"]) == (usual["cpp"], known.get("java").id, known.get("kotlin").id)
