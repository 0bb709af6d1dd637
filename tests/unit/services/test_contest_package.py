"""Imports of contest packages over the API: packages written by people, errors, hostile archives, files."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

import adjudge.packages.archive
from adjudge.domain.permissions import Role, effective_permissions
from adjudge.judge.source_bundle import encode_bundle
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.packages.archive_limits import ArchiveLimits
from adjudge.services.viewer import AuthMethod, Viewer
from tests.support.asgi_app import AsgiApp
from tests.support.contest_app import succeeded
from tests.support.problem_packages import icpc_package, zip_files

IMPORT = "/api/v1/contests:import"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40)
CONTEST = """
id: spring
name: Spring 2026
start_time: 2026-04-01T09:00:00+02
duration: 5:00:00
scoreboard_freeze_duration: 1:00:00
penalty_time: 10
"""
PROBLEMS = "- {id: sum, label: A, name: Sum of two, rgb: '#f00'}\n"
MINIMAL: dict[str, str | bytes] = {
    "contest.yaml": CONTEST,
    "problems.yaml": PROBLEMS,
    "problems/sum/package.zip": zip_files(icpc_package("A Sum")),
    "teams.yaml": "- {id: '7', name: Seven, group_ids: [north], organization_id: uni}\n",
    "groups.yaml": "- {id: north, name: North}\n",
    "organizations.yaml": "- {id: uni, name: University}\n",
    "accounts.yaml": "- {username: team7, type: team, team_id: '7', password: correct-horse-7}\n"
    "- {username: jay, type: judge}\n",
    "teams/7/photo.png": PNG,
}


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A package."""
    return zip_files({name: data.encode() if isinstance(data, str) else data for name, data in files.items()})


async def post(api: AsgiApp, data: bytes, role: str = "admin", **query: Any) -> Any:
    """Send a package; return the response."""
    async with api.as_role(role) as client:
        return await client.post(IMPORT, content=data, params=query)


async def test_minimal_package_of_a_person(api_on_both: AsgiApp) -> None:
    api = api_on_both
    seen = await succeeded(await post(api, archive(MINIMAL), "setter", preview=True))
    assert ({item["action"] for item in seen["items"]}, seen["findings"]) == ({"create"}, [])
    assert await api.store.rows("SELECT id FROM contests") == []
    _, token = await api.user("setter")
    async with api.client(token) as client:
        done = await succeeded(await client.post(IMPORT, content=archive(MINIMAL)))
        assert (done["items"], done["contest"], done["is_preview"]) == (seen["items"], "spring", False)
        contest = await succeeded(await client.get("/api/v1/contests/spring"))
        assert (contest["title"], contest["state"], contest["format"]) == ("Spring 2026", "draft", "icpc")
        settings = contest["settings"]
        assert (settings["format_cfg"], settings["freeze_after_sec"]) == ({"penalty_minutes": 10}, 14_400)
        (problem,) = (await succeeded(await client.get("/api/v1/contests/spring/problems")))["items"]
        assert (problem["label"], problem["title"], problem["rgb"]) == ("A", "Sum of two", "#ff0000")
        (team,) = (await succeeded(await client.get("/api/v1/contests/spring/participants")))["items"]
        assert (team["code"], team["groups"], team["members"]) == ("7", ["north"], ["team7"])
        photo = await client.get(f"/api/v1/contests/spring/participants/{team['id']}/photo")
        assert photo.content == PNG
        roles = (await succeeded(await client.get("/api/v1/contests/spring/roles")))["items"]
        assert {(item["user_name"], item["role"]) for item in roles} >= {("jay", "judge")}
        again = await succeeded(await client.post(IMPORT, content=archive(MINIMAL)))
        assert (again["is_unchanged"], [item["kind"] for item in again["items"]]) == (True, ["contest"])
    async with api.client() as visitor:
        login = await visitor.post("/api/v1/login", json={"name": "team7", "password": "correct-horse-7"})
        assert login.is_success, login.text
        refused = await visitor.post("/api/v1/login", json={"name": "jay", "password": "correct-horse-7"})
        assert refused.status_code == 401
    users = await api.store.rows("SELECT name, password_hash FROM users WHERE name IN ('jay', 'team7') ORDER BY name")
    assert [row["password_hash"] is None for row in users] == [True, False]


async def test_existing_users_organizations_and_problems_are_used_as_they_are(api_on_both: AsgiApp) -> None:
    api = api_on_both
    user_id, _ = await api.user("contestant", "team7")
    await succeeded(await post(api, archive(MINIMAL)))
    done = await succeeded(await post(api, archive(MINIMAL), slug="second"))
    used = {(item["kind"], item["code"]) for item in done["items"] if item["action"] == "use"}
    assert used == {("problem", "sum"), ("organization", "uni"), ("account", "team7"), ("account", "jay")}
    row = await api.store.row("SELECT password_hash FROM users WHERE id = :id", id=user_id)
    assert row["password_hash"] is None  # the password of the file is not given to a user who exists
    assert len(await api.store.rows("SELECT id FROM problem_revisions")) == 1


async def test_all_errors_are_reported_and_nothing_is_imported(api: AsgiApp) -> None:
    extension = {
        "version": 1,
        "contest": {"bronze_extra": 1, "state": "finalized", "registration": "code"},
        "participants": [{"id": "7", "members": ["nobody"], "team": "8", "delay_us": -1}],
        "accounts": [{"username": "nobody", "address_ranges": ["x"]}],
        "removed_intervals": [{"from_at": 5, "to_at": 5}, {"from_at": 10, "to_at": 20}, {"from_at": 15, "to_at": 30}],
        "clarifications": [
            {"number": 2, "audience": "some", "body": "", "created_by": "ghost", "created_at": 1, "reply_to": 1}
        ],
        "awards": [{"id": "winner", "citation": "W", "teams": ["9"]}],
        "materials": [{"name": "a/b", "title": "", "visible": "always"}],
    }
    files: dict[str, str | bytes] = MINIMAL | {
        "contest.yaml": CONTEST.replace("spring", "Spring!").replace("penalty_time: 10", "penalty_time: 0:00:30"),
        "problems.yaml": "- {id: Sum Of, label: A}\n- {id: missing, label: B}\n",
        "teams.yaml": "- {id: '7', name: Seven, group_ids: [south], organization_id: other}\n",
        "accounts.yaml": "- {username: team7, team_id: '8', password: short, ip: home}\n",
        "adjudge.json": json.dumps(extension),
    }
    seen = await succeeded(await post(api, archive(files), preview=True))
    found = [f"{item['path']}: {item['message']}" for item in seen["findings"] if item["severity"] == "error"]
    for part in (
        "contest.json: slug: must match",
        "contest.json: penalty_time: must be whole minutes",
        "problems.json: id: ",
        "problems.json: id: there is no problem 'missing'",
        "teams.yaml: organization_id: there is no organisation 'other'",
        "teams.yaml: group_ids: there is no group 'south'",
        "accounts.yaml: password: ",
        "accounts.yaml: ip: 'home' is not an address or a network",
        "accounts.yaml: team_id: there is no team '8'",
        "adjudge.json: contest.finalized_at: must be given exactly for a finalized contest",
        "adjudge.json: participants[0].members: there is no account 'nobody'",
        "adjudge.json: participants[0].team: '8' is not another participant",
        "adjudge.json: participants[0]: delay_us, extra_us and run_no must not be negative",
        "adjudge.json: accounts[0].username: there is no account 'nobody'",
        "adjudge.json: accounts[0].address_ranges[0]: 'x' is not a network",
        "adjudge.json: removed_intervals[0].to_at: must be after from_at",
        "adjudge.json: removed_intervals[2]: ",
        "adjudge.json: clarifications[0].audience: must be one of",
        "adjudge.json: clarifications[0].body: expected 1 to",
        "adjudge.json: clarifications[0].reply_to: there is no earlier clarification 1",
        "adjudge.json: clarifications[0].created_by: there is no account 'ghost'",
        "adjudge.json: awards[0].teams: there is no team '9'",
        "adjudge.json: materials[0].name: there is no file adjudge/materials/a/b",
        "adjudge.json: name: expected a file name",
    ):
        assert any(part in item for item in found), (part, found)
    refused = await post(api, archive(files))
    assert (refused.status_code, refused.json()["code"]) == (400, "PACKAGE_REFUSED")
    for table in ("contests", "problems", "organizations", "teams"):
        assert await api.store.rows(f"SELECT id FROM {table}") == []


async def test_contest_of_others_is_not_compared(api_on_both: AsgiApp) -> None:
    """The answer does not say whether the package equals a contest that the viewer does not organise."""
    api = api_on_both
    await succeeded(await post(api, archive(MINIMAL)))
    user_id, token = await api.user("setter")
    other = MINIMAL | {"contest.yaml": CONTEST.replace("penalty_time: 10", "penalty_time: 20")}
    async with api.client(token) as setter:
        for files in (MINIMAL, other):
            seen = await succeeded(await setter.post(IMPORT, content=archive(files), params={"preview": True}))
            assert [item["message"] for item in seen["findings"]] == ["id: the slug 'spring' is taken."]
            assert (seen["items"], seen["is_unchanged"]) == ([], False)
            assert (await setter.post(IMPORT, content=archive(files))).json()["code"] == "PACKAGE_REFUSED"
        async with api.as_role("admin") as admin:
            role = {"user": user_id, "role": "organiser"}
            assert (await admin.post("/api/v1/contests/spring/roles", json=role)).is_success
        seen = await succeeded(await setter.post(IMPORT, content=archive(other), params={"preview": True}))
        assert "exists and differs in: contest" in seen["findings"][0]["message"]


async def test_problem_package_with_errors(api: AsgiApp) -> None:
    broken = zip_files(icpc_package() | {"problem.yaml": b"problem_format_version: '2025-09'\nname: {\n"})
    seen = await succeeded(await post(api, archive(MINIMAL | {"problems/sum/package.zip": broken}), preview=True))
    assert seen["findings"][0]["path"] == "problems/sum/package.zip: problem.yaml"
    seen = await succeeded(await post(api, archive(MINIMAL | {"problems/sum/package.zip": b"PK no"}), preview=True))
    assert "is not a valid ZIP archive" in seen["findings"][0]["message"]


async def test_preview_finds_conflicts_of_the_import(api: AsgiApp) -> None:
    twice: dict[str, str | bytes] = {
        "problems.yaml": "- {id: sum, label: A, rgb: '#f00'}\n- {id: tree, label: B, rgb: '#f00'}\n",
        "problems/tree/package.zip": zip_files(icpc_package("Tree")),
    }
    seen = await succeeded(await post(api, archive(MINIMAL | twice), preview=True))
    assert [item["message"] for item in seen["findings"]] == [
        "problems[1].rgb: '#ff0000' is also the colour of problem A; choose another one."
    ]


async def test_new_problems_are_verified_on_request(api: AsgiApp) -> None:
    done = await succeeded(await post(api, archive(MINIMAL), verify=True))
    rows = await api.store.rows("SELECT id, purpose, state FROM problem_imports")
    assert [(row["id"], row["purpose"], row["state"]) for row in rows] == [
        (done["verifications"][0], "verify", "pending")
    ]
    again = await succeeded(await post(api, archive(MINIMAL), verify=True, slug="second"))
    assert again["verifications"] == [], "the revision is not new"


async def test_problem_of_another_user_is_refused(api: AsgiApp) -> None:
    await succeeded(await post(api, archive(MINIMAL)))
    other = MINIMAL | {"problems/sum/package.zip": zip_files(icpc_package() | {"data/secret/1.in": b"7 8\n"})}
    seen = await succeeded(await post(api, archive(other), "setter", slug="mine", preview=True))
    assert [item["message"] for item in seen["findings"]] == [
        "problems: the problem 'sum' belongs to another user and has other tests."
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not an archive", "expected a ZIP archive"),
        (b"PK\x03\x04 damaged", "is not a valid ZIP archive"),
        (archive({"../contest.yaml": CONTEST}), "leaves the package"),
        (archive({"/contest.yaml": CONTEST}), "is an absolute path"),
        (archive({"readme.txt": "hello"}), "has neither contest.json nor contest.yaml"),
    ],
)
async def test_hostile_and_wrong_archives(api: AsgiApp, data: bytes, message: str) -> None:
    refused = await post(api, data)
    assert refused.status_code == 400
    assert message in refused.json()["detail"]


async def test_archive_that_unpacks_to_too_much(api: AsgiApp) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("contest.yaml", CONTEST)
        with bomb.open("adjudge/submissions.ndjson", "w", force_zip64=True) as out:
            for _ in range(300):
                out.write(bytes(1 << 20))
    refused = await post(api, buffer.getvalue())
    assert refused.status_code == 400
    assert "unpacks to more than a package may" in refused.json()["detail"]


async def test_problem_packages_share_the_limits_of_the_contest_package(
    api: AsgiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two problem packages is small enough by itself, but not both together."""
    monkeypatch.setattr(adjudge.packages.archive, "ArchiveLimits", partial(ArchiveLimits, total_bytes=3_500_000))
    large = zip_files(icpc_package() | {"data/secret/big.in": bytes(1_000_000), "data/secret/big.ans": b"0\n"})
    files: dict[str, str | bytes] = MINIMAL | {
        "problems.yaml": "- {id: sum, label: A}\n- {id: tree, label: B}\n",
        "problems/sum/package.zip": large,
        "problems/tree/package.zip": large,
    }
    seen = await succeeded(await post(api, archive(files), preview=True))
    assert [(item["path"], item["message"]) for item in seen["findings"]] == [
        ("problems/tree/package.zip: data/secret/big.in", "unpacks to more than a package may.")
    ]


async def test_problem_packages_are_not_opened_without_permission_or_with_too_many(api: AsgiApp) -> None:
    damaged: dict[str, str | bytes] = MINIMAL | {"problems/sum/package.zip": b"PK no"}
    _, token = await api.user("setter", scopes=("contest:create",))
    async with api.client(token) as client:
        seen = await succeeded(await client.post(IMPORT, content=archive(damaged), params={"preview": True}))
    assert [item["message"] for item in seen["findings"]] == ["package: you may not import problems."]
    many = PROBLEMS + "".join(f"- {{id: p{number}, label: P{number}}}\n" for number in range(100))
    seen = await succeeded(await post(api, archive(damaged | {"problems.yaml": many}), preview=True))
    messages = {item["message"] for item in seen["findings"] if "there is no problem" not in item["message"]}
    assert messages == {"has more than 100 problems."}


async def test_sources_of_all_kinds_are_kept(api_on_both: AsgiApp) -> None:
    bundle = encode_bundle(ProgramSource((SourceFile("main.c", b"int main(){}"), SourceFile("a.h", b"")), "main.c"))
    sources = [b"print(1)\n", b"# " + b"x" * 70_000, b"\xff\xfe binary", bundle]
    lines = []
    files: dict[str, str | bytes] = dict(MINIMAL)
    for number, data in enumerate(sources, 1):
        digest = hashlib.sha256(data).hexdigest()
        files[f"adjudge/sources/{digest}"] = data
        lines.append(
            {
                "number": number,
                "team": "7",
                "user": "team7",
                "problem": "sum",
                "language": "python3",
                "source": digest,
                "source_format": "files" if data is bundle else "text",
                "created_at": number,
                "received_at": number,
                "status": "canceled",
                "finished_at": number,
            }
        )
    files["adjudge/submissions.ndjson"] = "".join(f"{json.dumps(line)}\n" for line in lines)
    files["adjudge.json"] = json.dumps({"version": 1, "participants": [{"id": "7", "members": ["team7"]}]})
    api = api_on_both
    async with api.as_role("admin") as admin:
        await succeeded(await admin.post(IMPORT, content=archive(files)))
        items = (await succeeded(await admin.get("/api/v1/contests/spring/jury/submissions")))["items"]
        texts = [await admin.get(f"/api/v1/submissions/{item['submission_id']}/source") for item in reversed(items[1:])]
        assert [answer.content for answer in texts] == sources[:3]
        many = await succeeded(await admin.get(f"/api/v1/submissions/{items[0]['submission_id']}/files"))
        assert [item["name"] for item in many["items"]] == ["a.h", "main.c"]
        exported = await admin.get("/api/v1/contests/spring/package")
        with zipfile.ZipFile(io.BytesIO(exported.content)) as found:
            for data in sources:
                assert found.read(f"adjudge/sources/{hashlib.sha256(data).hexdigest()}") == data
        files[f"adjudge/sources/{hashlib.sha256(sources[0]).hexdigest()}"] = b"something else"
        refused = await admin.post(IMPORT, content=archive(files), params={"slug": "other"})
        assert "does not have the digest that is its name" in refused.json()["detail"]


async def test_export_is_sent_in_small_pieces(api: AsgiApp) -> None:
    """A large material must not be held in memory."""
    _, token = await api.user("admin", "root")
    async with api.client(token) as admin:
        await succeeded(await admin.post(IMPORT, content=archive(MINIMAL)))
        noise = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(200_000))
        await succeeded(await admin.put("/api/v1/contests/spring/materials/big.bin", content=noise))
        viewer = await _viewer(api)
        export = await api.services.contest_exports.export(viewer, "spring")
        sizes = [len(piece) async for piece in export.pieces]
        assert sum(sizes) > len(noise)
        assert max(sizes) < 2 * 1024 * 1024


async def _viewer(api: AsgiApp) -> Viewer:
    row = await api.store.row("SELECT id FROM users WHERE name = 'root'")
    return Viewer(row["id"], "root", Role.ADMIN, effective_permissions(Role.ADMIN, frozenset({"*"})), AuthMethod.TOKEN)
