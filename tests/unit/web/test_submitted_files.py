"""The submit form with files, and the page of a submission that has several."""

from __future__ import annotations

from pathlib import Path

import httpx

from adjudge.domain.problem import Case, PackageFormat, Problem, ProblemMode
from adjudge.web.line_links import TextSegment, link_lines
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness

HOSTILE = "<script>alert(1)</script>"
FILES = {"main.py": b"import lib.one\n", "lib/one.py": f"# {HOSTILE}\n".encode(), "data.bin": b"\0\xff"}


def uploads(files: dict[str, bytes], field: str = "file") -> list[tuple[str, tuple[str, bytes]]]:
    return [(field, (name, data)) for name, data in files.items()]


async def submitted(client: httpx.AsyncClient, problem: str = "sum", **form: object) -> str:
    answer = await client.post(f"/problems/{problem}/submit", **form)  # type: ignore[arg-type]
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


async def test_several_uploaded_files_are_submitted_and_shown(pages: AsgiApp) -> None:
    async with (await publish_problem(pages)).user_client() as client:
        data = {"language": "python3", "source": "", "entry_point": "main.py"}
        path = await submitted(client, data=data, files=uploads(FILES))
        page = (await client.get(path)).text
        for name in FILES:
            assert f'aria-label="{name}"' in page
            assert f"/api/v1{path}/files/{name}" in page
        assert HOSTILE not in page
        assert f"/api/v1{path}/archive" in page
        assert page.count("Not shown") == 1, "the binary file"
        assert 'id="F1L1"' in page
        found = await client.get(f"/api/v1{path}/files")
        assert (found.json()["entry_point"], len(found.json()["items"])) == ("main.py", 3)


async def test_rejected_files_keep_language_and_entry_point(pages: AsgiApp) -> None:
    async with (await publish_problem(pages)).user_client() as client:
        data = {"language": "python3", "source": "", "entry_point": f"{HOSTILE}.py"}
        answer = await client.post("/problems/sum/submit", data=data, files=uploads(FILES))
        assert answer.status_code == 400
        assert "is not one of the files" in answer.text
        assert HOSTILE not in answer.text
        assert 'value="python3" data-extensions="py py3" data-entry-point="file" selected' in answer.text
        broken = await client.post("/problems/sum/submit", data=data, files=uploads({"s.zip": b"no archive"}))
        assert (broken.status_code, "s.zip: is not a readable archive" in broken.text) == (400, True)
        assert (await pages.store.rows("SELECT id FROM submissions")) == []


async def test_output_only_problem_has_its_own_form(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    cases = tuple(Case(f"secret/{n}", "", f"{n}.in", output_name=f"secret/{n}.out") for n in (1, 2))
    problem = Problem("sum", PackageFormat("icpc"), mode=ProblemMode.SUBMIT_ANSWER, cases=cases)
    async with make_app(sqlite_store, tmp_path) as api:
        add_pages(api.app, api.services)
        async with (await publish_problem(api, problem)).user_client() as client:
            form = (await client.get("/problems/sum")).text
            assert "<textarea" not in form
            assert [f"<code>secret/{n}.out</code>" in form for n in (1, 2)] == [True, True]
            path = await submitted(client, files=uploads({"2.out": b"4\n"}, "files"))
            page = (await client.get(path)).text
            assert "secret/2.out" in page
            assert "Output files" in page
            assert "Output files" in (await client.get("/submissions")).text
            wrong = await client.post("/problems/sum/submit", files=uploads({"3.out": b""}, "files"))
            assert (wrong.status_code, "expected names: secret/1.out" in wrong.text) == (400, True)
            nothing = await client.post("/problems/sum/submit", data={"language": ""})
            assert nothing.status_code == 400


def test_messages_link_to_lines_of_several_files() -> None:
    found = link_lines("lib/one.h:3: error\none.h:4: other\nmain.cpp:1:2", ["lib/one.h", "main.cpp"])
    assert found == [
        TextSegment("lib/one.h:3", 3, 0),
        TextSegment(": error\none.h:4: other\n"),
        TextSegment("main.cpp:1", 1, 1),
        TextSegment(":2"),
    ]
