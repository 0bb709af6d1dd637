"""Problems over HTTP: import, publish, list, search, read, compare, withdraw, and who may."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.api.pagination import encode_cursor
from adjudge.domain.ids import new_id
from adjudge.store.engine.statement import Dialect
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.problem_packages import icpc_package, import_package, run_pending_imports, zip_files
from tests.support.store_harness import StoreHarness

ROOT = "/api/v1"


async def publish(api: AsgiApp, folder: Path, token: str, slug: str, **fields: Any) -> dict[str, Any]:
    files = fields.pop("files", {})
    data = zip_files(icpc_package(fields.pop("title", slug.title()), **files))
    return await import_package(api, folder, token, data, slug=slug, publish=True, **fields)


async def test_a_package_becomes_a_problem_that_visitors_read(api_on_both: AsgiApp, tmp_path: Path) -> None:
    api = api_on_both
    _, setter = await api.user("setter")
    found = await import_package(
        api, tmp_path, setter, zip_files(icpc_package("Sum")), slug="sum", tag=["math", "Easy One"]
    )
    assert (found["state"], found["revision"], found["slug"], found["error"]) == ("succeeded", 1, "sum", None)
    async with api.client() as visitor, api.client(setter) as client:
        assert (await visitor.get(f"{ROOT}/problems/sum")).json()["code"] == "PROBLEM_NOT_FOUND"
        body = {"version": 1, "revision": 1}
        state = (await client.post(f"{ROOT}/problems/sum:publish", json=body)).json()
        assert (state["published_revision"], state["version"], state["tags"]) == (1, 2, ["math", "easy one"])
        detail = (await visitor.get(f"{ROOT}/problems/sum")).json()
        assert detail["statement"]["html"] == (
            '<p>Add <em>two</em> numbers <span class="math inline">a</span>'
            ' and <span class="math inline">b</span>.</p>\n'
        )
        assert detail["samples"] == [{"name": "sample/1", "input": "1 2\n", "output": "3\n", "is_cut": False}]
        assert (detail["limits"]["time_ms"], detail["tests"], detail["state"]) == (1000, 2, "published")
        assert (await visitor.get(f"{ROOT}/problems/{detail['id']}")).json() == detail
        attachment = await visitor.get(detail["attachments"][0]["url"])
        assert (attachment.text, attachment.headers["content-type"]) == ("Think.\n", "application/octet-stream")
        assert attachment.headers["content-disposition"].startswith("attachment")


async def test_an_unchanged_problem_is_304_and_a_changed_one_is_not(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    await publish(api, tmp_path, setter, "sum")
    async with api.client() as visitor, api.client(setter) as client:
        first = await visitor.get(f"{ROOT}/problems/sum")
        known = {"If-None-Match": f'W/"other", {first.headers["etag"]}'}
        again = await visitor.get(f"{ROOT}/problems/sum", headers=known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        assert first.headers["cache-control"] == "private, no-cache"
        patch = {"version": 2, "title": "Another", "difficulty": 900}
        assert (await client.patch(f"{ROOT}/problems/sum", json=patch)).json()["title"] == "Another"
        changed = await visitor.get(f"{ROOT}/problems/sum", headers=known)
        assert (changed.status_code, changed.json()["title"], changed.json()["difficulty"]) == (200, "Another", 900)
        stale = await client.patch(f"{ROOT}/problems/sum", json=patch)
        assert (stale.status_code, stale.json()["code"]) == (409, "VERSION_CONFLICT")


async def names(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get(f"{ROOT}/problems", params=query)
    assert answer.status_code == 200, answer.text
    return [item["slug"] for item in answer.json()["items"]]


async def test_search_finds_beginnings_of_words_and_filters_narrow(api_on_both: AsgiApp, tmp_path: Path) -> None:
    api = api_on_both
    user_id, setter = await api.user("setter")
    await publish(api, tmp_path, setter, "trees", title="Growing Trees", tag=["graphs", "dp"], difficulty=1500)
    await publish(api, tmp_path, setter, "roads", title="Roads & Trees", tag=["graphs"], difficulty=1200)
    await publish(api, tmp_path, setter, "cafe", title="CAFÉ Größe", tag=["strings"])
    async with api.client() as visitor, api.client(setter) as client:
        assert await names(visitor) == ["cafe", "roads", "trees"]
        assert await names(visitor, q="tre") == ["roads", "trees"]
        assert await names(visitor, q="TREES grow") == ["trees"]
        assert await names(visitor, q="café grösse") == ["cafe"]
        assert await names(visitor, q="ree") == []
        assert await names(visitor, tag="graphs") == ["roads", "trees"]
        assert await names(visitor, tag=["graphs", "DP"]) == ["trees"]
        assert await names(visitor, difficulty_min=1300) == ["trees"]
        assert await names(visitor, difficulty_max=1300) == ["roads"]
        assert await names(visitor, sort="easiest") == ["roads", "trees", "cafe"]
        assert await names(visitor, sort="hardest") == ["trees", "roads", "cafe"]
        assert await names(visitor, sort="title") == ["cafe", "trees", "roads"]
        assert await names(client, solved=True) == []
        await submitted(api, user_id, "roads", "AC")
        api.services.problems.cache.revisions.bump_local(f"user:{user_id}")
        assert await names(client, solved=True) == ["roads"]
        assert await names(client, solved=False) == ["cafe", "trees"]
        marks = (await client.get(f"{ROOT}/problems")).json()["items"]
        assert {item["slug"]: item["solved"] for item in marks} == {"cafe": False, "roads": True, "trees": False}


async def submitted(api: AsgiApp, user_id: str, slug: str, verdict: str | None) -> None:
    """A submission as it stands in the end; None: it waits."""
    status = {None: "pending", "AC": "accepted", "CE": "error", "SE": "error"}.get(verdict, "wrong_answer")
    is_sqlite = api.store.database.dialect is Dialect.SQLITE
    column, number = ("number, ", "(SELECT count(*) + 1 FROM submissions), ") if is_sqlite else ("", "")
    await api.store.write(
        f"INSERT INTO submissions ({column}id, user_id, problem_id, revision_id, language, source_digest, source_bytes,"
        f" status, verdict, created_at, updated_at, finished_at) SELECT {number}:id, :user, id, published_revision_id,"
        " 'c', 'd', 1, :status, :verdict, 1, 1, CASE WHEN CAST(:verdict AS text) IS NULL THEN NULL ELSE 1 END"
        " FROM problems WHERE slug = :slug",
        id=new_id(),
        user=user_id,
        status=status,
        verdict=verdict,
        slug=slug,
    )


async def test_lists_say_what_was_tried_and_how_problems_fare(api_on_both: AsgiApp, tmp_path: Path) -> None:
    api = api_on_both
    (one, token), (other, _) = await api.user("setter"), await api.user("contestant")
    for slug in ("solved", "tried", "waits", "untried"):
        await publish(api, tmp_path, token, slug)
    for user_id, slug, verdict in (
        (one, "solved", "WA"),
        (one, "solved", "AC"),
        (one, "solved", "AC"),
        (other, "solved", "AC"),
        (one, "tried", "CE"),
        (other, "tried", "AC"),
        (one, "waits", None),
        (other, "untried", "PA"),
        (other, "untried", "SE"),  # a failure of ours says nothing of the problem
    ):
        await submitted(api, user_id, slug, verdict)
    async with api.client(token) as client, api.client() as visitor:
        items = {item["slug"]: item for item in (await client.get(f"{ROOT}/problems")).json()["items"]}
        assert {slug: (item["solved"], item["tried"]) for slug, item in items.items()} == {
            "solved": (True, False),
            "tried": (False, True),
            "waits": (False, False),
            "untried": (False, False),
        }
        facts = ("solvers", "accepted", "judged", "acceptance")
        assert {slug: tuple(item[fact] for fact in facts) for slug, item in items.items()} == {
            "solved": (2, 3, 4, 0.75),
            "tried": (1, 1, 2, 0.5),
            "waits": (0, 0, 0, None),
            "untried": (0, 0, 1, 0.0),
        }
        assert await names(client, tried=True) == ["tried"]
        assert await names(client, tried=False, sort="title") == ["solved", "untried", "waits"]
        assert await names(client, tried=False, solved=False, sort="title") == ["untried", "waits"]
        assert sorted(await names(visitor, tried=True)) == sorted(items), "visitors have no marks to filter by"
        seen = (await visitor.get(f"{ROOT}/problems")).json()["items"]
        assert {item["tried"] for item in seen} == {None}
        assert {item["slug"]: item["solvers"] for item in seen}["solved"] == 2


async def in_pieces(client: httpx.AsyncClient, sort: str) -> list[str]:
    found: list[str] = []
    query = httpx.QueryParams(sort=sort, limit=1)
    while True:
        answer = (await client.get(f"{ROOT}/problems", params=query)).json()
        found += [item["slug"] for item in answer["items"]]
        if answer["next"] is None:
            return found
        query = query.set("cursor", answer["next"])


async def test_pages_are_the_list_cut_in_pieces(api_on_both: AsgiApp, tmp_path: Path) -> None:
    api = api_on_both
    _, setter = await api.user("setter")
    for number, difficulty in enumerate([None, 5, 5, 1]):
        given = {} if difficulty is None else {"difficulty": difficulty}
        await publish(api, tmp_path, setter, f"p{number}", title="Same" if number < 2 else f"T{number}", **given)
    async with api.client() as visitor:
        for sort in ("newest", "title", "easiest", "hardest"):
            whole = await names(visitor, sort=sort)
            assert len(whole) == 4
            assert await in_pieces(visitor, sort) == whole
        refused = await visitor.get(f"{ROOT}/problems", params={"cursor": "bm9uc2Vuc2U"})
        assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_INPUT")


async def test_others_drafts_and_jury_files_do_not_exist(api: AsgiApp, tmp_path: Path) -> None:
    _, owner = await api.user("setter")
    await import_package(api, tmp_path, owner, zip_files(icpc_package()), slug="secret-draft")
    secrets = [
        ("GET", "/problems/secret-draft"),
        ("GET", "/problems/secret-draft/revisions"),
        ("GET", "/problems/secret-draft/revisions/1"),
        ("GET", "/problems/secret-draft/revisions/1/preview"),
        ("GET", "/problems/secret-draft/diff?old=1&new=2"),
        ("GET", "/problems/secret-draft/files/hint.txt"),
        ("GET", "/problems/secret-draft/revisions/1/files/data/secret/1.in"),
        ("GET", "/problems/secret-draft/state"),
        ("POST", "/problems/secret-draft/revisions/1:verify"),
    ]
    async with api.as_role("setter") as other_user, api.client(owner) as client, api.as_role("judge") as judge:
        for method, path in secrets:
            answer = await other_user.request(method, ROOT + path)
            assert answer.status_code == 404, path
        for action in ("publish", "rollback", "withdraw"):
            body = {"version": 1, "revision": 1} if action != "withdraw" else {"version": 1}
            assert (await other_user.post(f"{ROOT}/problems/secret-draft:{action}", json=body)).status_code == 404
        assert (await other_user.patch(f"{ROOT}/problems/secret-draft", json={"version": 1})).status_code == 404
        assert await names(other_user, mine=True) == []
        assert await names(client, mine=True) == ["secret-draft"]
        test = f"{ROOT}/problems/secret-draft/revisions/1/files/data/secret/1.in"
        assert (await client.get(test)).text == "5 6\n"
        assert (await judge.get(test)).text == "5 6\n"
        assert (await client.get(f"{ROOT}/problems/secret-draft")).json()["state"] == "draft"


async def test_of_a_published_problem_only_public_files_are_public(api: AsgiApp, tmp_path: Path) -> None:
    _, owner = await api.user("setter")
    await publish(api, tmp_path, owner, "sum")
    async with api.client() as visitor, api.as_role("contestant") as contestant, api.as_role("setter") as setter:
        for client in (visitor, contestant, setter):
            for path in ("files/data/secret/1.in", "files/submissions/accepted/sum.py", "files/../problem.yaml"):
                assert (await client.get(f"{ROOT}/problems/sum/{path}")).status_code == 404
            answer = await client.get(f"{ROOT}/problems/sum/revisions/1/files/data/secret/1.in")
            assert answer.status_code == 404
            assert (await client.get(f"{ROOT}/problems/sum/revisions/1")).status_code == 404


async def test_a_slug_of_somebody_else_is_refused_at_once_and_at_the_end(api: AsgiApp, tmp_path: Path) -> None:
    _, owner = await api.user("setter")
    _, other = await api.user("setter")
    await publish(api, tmp_path, owner, "sum")
    async with api.client(other) as client:
        refused = await client.post(
            f"{ROOT}/problems:import", content=zip_files(icpc_package()), params={"slug": "sum"}
        )
        assert (refused.status_code, refused.json()["code"]) == (409, "CONFLICT")
        waiting = await client.post(
            f"{ROOT}/problems:import", content=zip_files(icpc_package()), params={"slug": "late"}
        )
        await publish_late(api, tmp_path, owner)
        await run_pending_imports(api, tmp_path)
        ended = (await client.get(waiting.json()["url"])).json()
    assert (ended["state"], "belongs to another user" in ended["error"]) == ("failed", True)


async def publish_late(api: AsgiApp, folder: Path, token: str) -> None:
    await api.store.write("UPDATE jobs SET status = 'queued' WHERE kind = 'import' AND status = 'pending'")
    await publish(api, folder, token, "late")
    await api.store.write("UPDATE jobs SET status = 'pending' WHERE kind = 'import' AND status = 'queued'")


async def test_revisions_are_compared_published_and_rolled_back(api_on_both: AsgiApp, tmp_path: Path) -> None:
    api = api_on_both
    _, setter = await api.user("setter")
    await publish(api, tmp_path, setter, "sum")
    longer: dict[str, str | bytes] = {
        "problem.yaml": icpc_package("Sum")["problem.yaml"].replace(b"1.0", b"3.0"),
        "data/secret/2.in": "7 8\n",
        "data/secret/2.ans": "15\n",
        "statement/problem.en.md": "Add them.\n",
    }
    data = zip_files(icpc_package("Sum", **longer))
    second = await import_package(api, tmp_path, setter, data, slug="sum")
    assert second["revision"] == 2
    async with api.client(setter) as client, api.client() as visitor:
        diff = (await client.get(f"{ROOT}/problems/sum/diff", params={"old": 1, "new": 2})).json()
        assert (diff["old_tests"], diff["new_tests"], diff["changes_verdicts"]) == (2, 3, True)
        changes = {change["path"]: change for change in diff["files"]}
        assert changes["data/secret/2.in"]["change"] == "added"
        assert "-Add *two* numbers $a$ and $b$.\n+Add them." in changes["statement/problem.en.md"]["diff"]
        assert {"name": "limits.run.cpu_ms", "old": 1000, "new": 3000} in diff["values"]
        assert (await visitor.get(f"{ROOT}/problems/sum")).json()["revision"] == 1
        published = await client.post(f"{ROOT}/problems/sum:publish", json={"version": 2, "revision": 2})
        assert published.json()["published_revision"] == 2
        assert (await visitor.get(f"{ROOT}/problems/sum")).json()["limits"]["time_ms"] == 3000
        back = await client.post(f"{ROOT}/problems/sum:rollback", json={"version": 3, "reason": "wrong tests"})
        assert back.json()["published_revision"] == 1
        assert (await visitor.get(f"{ROOT}/problems/sum")).json()["revision"] == 1
        listed = (await client.get(f"{ROOT}/problems/sum/revisions")).json()["items"]
        assert [(item["number"], item["is_current"]) for item in listed] == [(2, False), (1, True)]
        gone = await client.post(f"{ROOT}/problems/sum:withdraw", json={"version": 4})
        assert gone.json()["published_revision"] is None
        assert (await visitor.get(f"{ROOT}/problems/sum")).status_code == 404
        assert await names(visitor) == []
    actions = await api.store.rows("SELECT action, reason FROM audit_log ORDER BY id")
    expected = ["problem.publish", "problem.publish", "problem.rollback", "problem.withdraw"]
    assert [row["action"] for row in actions] == expected


async def test_a_broken_package_says_where(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    files = icpc_package()
    del files["data/secret/1.ans"]
    found = await import_package(api, tmp_path, setter, zip_files(files), slug="broken")
    assert (found["state"], found["error"], found["revision"]) == ("failed", "The package has errors.", None)
    (error,) = [item for item in found["findings"] if item["severity"] == "error"]
    assert error["path"].startswith("data/secret/1")


@pytest.mark.parametrize("data", [b"", b"P", b"no zip at all"])
async def test_what_is_no_archive_is_refused_before_it_is_stored(api: AsgiApp, data: bytes) -> None:
    async with api.as_role("setter") as client:
        answer = await client.post(f"{ROOT}/problems:import", content=data)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT")


async def test_a_form_serves_too_and_too_much_is_too_much(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    data = zip_files(icpc_package("Formed"))
    async with api.client(setter) as client:
        answer = await client.post(f"{ROOT}/problems:import", files={"package": ("formed.zip", data)})
        assert answer.status_code == 202
        await run_pending_imports(api, tmp_path)
        assert (await client.get(answer.json()["url"])).json()["slug"] == "formed"
        wrong = await client.post(f"{ROOT}/problems:import", files={"other": ("formed.zip", data)})
        assert wrong.status_code == 400


async def test_an_import_publishes_only_what_it_verifies(api: AsgiApp) -> None:
    data = zip_files(icpc_package("Formed"))
    async with api.as_role("setter") as client:
        refused = await client.post(f"{ROOT}/problems:import?publish=true&verify=false", content=data)
        assert (refused.status_code, refused.json()["fields"]["field"]) == (400, "verify")
        for query in ("publish=true", "publish=true&verify=true", "verify=false", ""):
            assert (await client.post(f"{ROOT}/problems:import?{query}", content=data)).status_code == 202
    rows = await api.store.rows("SELECT requested FROM problem_imports ORDER BY id")
    assert [json.loads(row["requested"])["verify"] for row in rows] == [True, True, False, False]


async def test_a_package_without_a_title_is_called_as_was_asked_for(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    data = zip_files({"1.in": b"1\n", "1.out": b"1\n"})
    await import_package(api, tmp_path, setter, data, slug="echo", publish=True)
    await import_package(api, tmp_path, setter, data, slug="echo-two", title="Echo, twice", publish=True)
    async with api.client() as visitor:
        titles = [(await visitor.get(f"{ROOT}/problems/{slug}")).json()["title"] for slug in ("echo", "echo-two")]
    assert titles == ["echo", "Echo, twice"]


async def test_an_import_is_watched_until_it_ends(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    async with api.client(setter) as client, api.as_role("setter") as other_user:
        url = (await client.post(f"{ROOT}/problems:import", content=zip_files(icpc_package()))).json()["url"]
        assert (await other_user.get(f"{url}/events")).status_code == 404
        watching = asyncio.create_task(client.get(f"{url}/events"))
        while not len(api.services.connections):
            await asyncio.sleep(0)
        await run_pending_imports(api, tmp_path)
        async with asyncio.timeout(120):
            events = (await watching).text.split("\n\n")
    names = [
        line.removeprefix("event: ") for event in events for line in event.splitlines() if line.startswith("event: ")
    ]
    states = [json.loads(event.partition("data: ")[2])["state"] for event in events if "data: " in event]
    assert (names[0], names[-1], states[0], states[-1]) == ("import", "end", "pending", "succeeded")
    assert (set(names[:-1]), len(api.services.connections)) == ({"import"}, 0)


async def test_an_import_can_be_canceled_once_and_only_by_its_own(api: AsgiApp) -> None:
    _, setter = await api.user("setter")
    async with api.client(setter) as client, api.as_role("setter") as other_user:
        url = (await client.post(f"{ROOT}/problems:import", content=zip_files(icpc_package()))).json()["url"]
        assert (await other_user.get(url)).status_code == 404
        assert (await other_user.post(f"{url}:cancel")).status_code == 404
        assert (await client.post(f"{url}:cancel")).json()["state"] == "canceled"
        assert (await client.post(f"{url}:cancel")).status_code == 409
        assert [item["state"] for item in (await client.get(f"{ROOT}/imports")).json()["items"]] == ["canceled"]


async def test_statements_come_in_the_language_that_was_asked_for(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    files = {"statement/problem.de.md": "Addiere.\n", "statement/problem.en.md": "Add.\n"}
    files["problem.yaml"] = (
        icpc_package()["problem.yaml"].decode().replace("name: A Problem", "name: {en: Sum, de: Summe}")
    )
    await publish(api, tmp_path, setter, "sum", files=files)
    async with api.client() as visitor:

        async def shown(query: str = "", **headers: str) -> tuple[str, str]:
            answer = (await visitor.get(f"{ROOT}/problems/sum{query}", headers=headers)).json()
            return answer["statement"]["language"], answer["title"]

        assert await shown() == ("en", "Sum")
        assert await shown("?lang=de") == ("de", "Summe")
        assert await shown(**{"Accept-Language": "fr;q=0.9, de-AT;q=0.8, en;q=0.1"}) == ("de", "Summe")
        assert await shown("?lang=de", **{"Accept-Language": "en"}) == ("de", "Summe")
        assert await shown("?lang=fr") == ("en", "Sum")


async def test_batched_steps_give_the_same_reply_as_single_ones(api: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api.user("setter")
    await publish(api, tmp_path, setter, "sum")
    short, long = f"{ROOT}/problems/sum", f"{ROOT}/problems/sum?lang="
    kept = ("etag", "cache-control", "vary", "content-type", "content-length", "x-content-type-options")
    async with api.client() as visitor, api.client(setter) as client, api.client("adj_wrong") as liar:
        await visitor.get(short)
        for reader in (visitor, client):
            first, second = await reader.get(short), await reader.get(long)
            assert first.content == second.content
            assert [first.headers[name] for name in kept] == [second.headers[name] for name in kept]
            known = {"If-None-Match": first.headers["etag"]}
            assert [(await reader.get(url, headers=known)).status_code for url in (short, long)] == [304, 304]
        assert [(await liar.get(url)).status_code for url in (short, long)] == [401, 401]


async def test_where_visitors_may_not_read_the_cache_lets_none_in(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(sqlite_store, tmp_path, {"accounts.visitors_may_read": False}) as api:
        _, setter = await api.user("setter")
        await publish(api, tmp_path, setter, "sum")
        async with api.client(setter) as client, api.client() as visitor:
            assert (await client.get(f"{ROOT}/problems/sum")).status_code == 200
            assert (await visitor.get(f"{ROOT}/problems/sum")).status_code == 401


WEIRD = [
    "/problems/%00",
    "/problems/%F0%9F%8C%B3",
    "/problems/.",
    "/problems?q=%00%FF&limit=1",
    "/problems?tag=%00",
    "/problems?difficulty_min=nan",
    "/problems?difficulty_max=inf",
    "/problems?limit=0",
    "/problems?cursor=" + "A" * 3_000,
    "/problems?cursor=" + encode_cursor([10**30, "x"]),
    "/problems?cursor=" + encode_cursor([1, "\0"]),
    "/problems?sort=title&cursor=" + encode_cursor(["\ud800", "x"]),
    "/problems?sort=easiest&cursor=" + encode_cursor([float("nan"), "x"]),
    "/problems/sum/revisions?cursor=" + encode_cursor([10**30]),
    "/problems/sum/revisions/9007199254740993",
    "/problems/sum/files/%00",
    "/problems/sum/revisions/1/files/../../../etc/passwd",
    "/problems/sum/diff?old=1&new=1",
    "/imports/%00",
    "/imports?cursor=" + encode_cursor(["\0"]),
]


async def test_nonsense_gets_an_answer_that_is_no_fault_of_ours(api_on_both: AsgiApp, tmp_path: Path) -> None:
    _, setter = await api_on_both.user("setter")
    await publish(api_on_both, tmp_path, setter, "sum")
    async with api_on_both.client(setter) as client:
        answers = {path: (await client.get(ROOT + path)).status_code for path in WEIRD}
    assert {path: status for path, status in answers.items() if status >= 500} == {}
