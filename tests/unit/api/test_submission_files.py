"""Submissions of several files over the API: accepted forms, limits, reading, visibility."""

from __future__ import annotations

import base64
import io
import zipfile
from hashlib import sha256
from typing import Any

import httpx
import pytest

from adjudge.domain.problem import Case, PackageFormat, Problem, ProblemLimits, ProblemMode
from adjudge.judge.source_bundle import decode_bundle
from adjudge.store.judging.commands import find_judge_task
from tests.support.asgi_app import AsgiApp
from tests.support.published_problem import PublishedProblem, publish_problem

PYTHON = {"main.py": "import lib.one\n", "lib/one.py": "print(1)\n", "lib/__init__.py": "", "data.bin": "1"}
LIMIT_BYTES = 4 * 1024**2


def listed(files: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "content": text} for name, text in files.items()]


def zipped(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def output_only_problem(*names: str) -> Problem:
    cases = tuple(Case(name, "", f"{name}.in", output_name=f"{name}.out") for name in names)
    return Problem("sum", PackageFormat("icpc"), mode=ProblemMode.SUBMIT_ANSWER, cases=cases, limits=ProblemLimits())


async def accepted_files(client: httpx.AsyncClient, submission_id: str) -> dict[str, str]:
    answer = await client.get(f"/api/v1/submissions/{submission_id}/files")
    assert answer.status_code == 200, answer.text
    return {item["name"]: item["content"] for item in answer.json()["items"]}


async def refused(client: httpx.AsyncClient, **body: Any) -> tuple[str, str]:
    answer = await client.post("/api/v1/submissions", json={"problem": "sum", **body})
    assert answer.status_code == 400, answer.text
    return answer.json()["fields"]["field"], answer.json()["detail"]


async def test_several_files_are_stored_and_read(api_on_both: AsgiApp) -> None:
    problem = await publish_problem(api_on_both)
    async with problem.user_client() as client, problem.user_client() as other:
        body = {"problem": "sum", "language": "python3", "files": listed(PYTHON), "entry_point": "main.py"}
        answer = await client.post("/api/v1/submissions", json=body)
        assert answer.status_code == 202, answer.text
        made = answer.json()
        task = await api_on_both.store.database.read(lambda tx: find_judge_task(tx, made["submission_id"]))
        assert (task.source_format, task.language) == ("files", "python3")
        judged = decode_bundle((task.source_text or "").encode())
        assert ({file.name: file.data.decode() for file in judged.files}, judged.entry_point) == (PYTHON, "main.py")

        where = f"/api/v1/submissions/{made['submission_id']}"
        read = (await client.get(where)).json()
        assert read["source_bytes"] == sum(len(text) for text in PYTHON.values())
        files = (await client.get(f"{where}/files")).json()
        assert files["entry_point"] == "main.py"
        assert [item["name"] for item in files["items"]] == sorted(PYTHON)
        assert files["items"][0]["sha256"] == sha256(b"1").hexdigest()
        one = await client.get(f"{where}/files/lib/one.py")
        assert (one.text, one.headers["content-type"]) == (PYTHON["lib/one.py"], "application/octet-stream")
        assert "attachment" in one.headers["content-disposition"]
        archive = await client.get(f"{where}/archive")
        with zipfile.ZipFile(io.BytesIO(archive.content)) as unpacked:
            assert {name: unpacked.read(name).decode() for name in unpacked.namelist()} == PYTHON
        source = await client.get(f"{where}/source")
        assert (source.status_code, "4 files" in source.json()["detail"]) == (400, True)
        assert (await client.get(f"{where}/files/none.py")).status_code == 404
        for path in ("files", "files/main.py", "archive", "source"):
            assert (await other.get(f"{where}/{path}")).status_code == 404, path


async def test_single_source_is_read_as_a_file(api: AsgiApp) -> None:
    problem = await publish_problem(api)
    async with problem.user_client() as client:
        made = await problem.submit(client)
        single = await problem.submit(client, source=None, files=[{"name": "a.cpp", "content": "int main() {}\n"}])
        assert list(await accepted_files(client, made["submission_id"])) == ["main.cpp"]
        assert (await client.get(f"/api/v1/submissions/{single['submission_id']}/source")).text == "int main() {}\n"


@pytest.mark.parametrize("field", ["files", "content_base64"])
async def test_archives_are_unpacked(api: AsgiApp, field: str) -> None:
    await publish_problem(api)
    async with api.as_role("contestant") as client:
        if field == "files":
            uploads = [("files", ("s.zip", zipped(PYTHON))), ("files", ("extra.txt", b"x"))]
            form = {"problem": "sum", "language": "python3", "entry_point": "main.py"}
            answer = await client.post("/api/v1/submissions", data=form, files=uploads)
        else:
            items = [{"name": "s.zip", field: base64.b64encode(zipped(PYTHON)).decode()}, *listed({"extra.txt": "x"})]
            body = {"problem": "sum", "language": "python3", "entry_point": "main.py", "files": items}
            answer = await client.post("/api/v1/submissions", json=body)
        assert answer.status_code == 202, answer.text
        assert await accepted_files(client, answer.json()["submission_id"]) == PYTHON | {"extra.txt": "x"}


async def test_idempotency_key_covers_files(api_on_both: AsgiApp) -> None:
    await publish_problem(api_on_both)
    async with api_on_both.as_role("contestant") as client:

        async def send(files: dict[str, str]) -> httpx.Response:
            body = {"problem": "sum", "language": "python3", "files": listed(files)}
            return await client.post("/api/v1/submissions", json=body, headers={"Idempotency-Key": "k"})

        first, again, other = await send(PYTHON), await send(PYTHON), await send(PYTHON | {"main.py": "2"})
        assert first.json() == again.json()
        assert other.json()["code"] == "IDEMPOTENCY_KEY_REUSED"


async def test_batch_takes_files(api: AsgiApp) -> None:
    problem = await publish_problem(api)
    async with problem.user_client() as client:
        items = [problem.submission_body(), {"problem": "sum", "language": "python3", "files": listed(PYTHON)}]
        answer = await client.post("/api/v1/submissions:batch", json={"items": items})
        assert answer.status_code == 202, answer.text
        items[1]["entry_point"] = "none.py"
        answer = await client.post("/api/v1/submissions:batch", json={"items": items})
        assert (answer.status_code, answer.json()["fields"]["field"]) == (400, "items[1].entry_point")


async def test_invalid_files_are_refused(api: AsgiApp) -> None:
    await publish_problem(api)
    python: dict[str, Any] = {"language": "python3"}
    async with api.as_role("contestant") as client:
        cases: list[tuple[dict[str, Any], str, str]] = [
            ({}, "source", "either `source` or `files`"),
            (python | {"source": "1", "files": listed(PYTHON)}, "source", "either `source` or `files`"),
            (python | {"files": [{"name": "a.py"}]}, "files[0]", "either `content` or `content_base64`"),
            (python | {"files": [{"name": "a.py", "content_base64": "?"}]}, "files[0].content_base64", "Base64"),
            (python | {"files": listed({"../a.py": "1"})}, "files", "leaves the submission"),
            (
                python | {"files": listed({"a.txt": "1", "b.txt": "1"})},
                "files",
                "none of a.txt, b.txt is a Python",
            ),
            (python | {"files": listed({"a.py": " ", "b.txt": "1"})}, "files", "a.py: must not be empty"),
            (python | {"files": listed({"a.py": "1", "b.py": "1\n\0"})}, "files", "b.py: NUL byte on line 2"),
            (python | {"files": listed({f"{n}.py": "1" for n in range(33)})}, "files", "more than 32 files"),
            (
                python | {"files": listed({"a.py": "1", "b.txt": "x" * LIMIT_BYTES})},
                "files",
                f"more than {LIMIT_BYTES}",
            ),
            (python | {"files": listed({"a.py": "1", "b.txt": "x" * 100_000})}, "files", "exceed the limit of 100000"),
            (python | {"files": listed(PYTHON), "entry_point": "one.py"}, "entry_point", "not one of the files"),
            ({"language": "cpp", "source": "1", "entry_point": "main"}, "entry_point", "have no entry point"),
            ({"language": "java", "source": "1", "entry_point": "a-b"}, "entry_point", "not the name of a class"),
            ({"source": "1"}, "language", "missing"),
        ]
        for body, field, text in cases:
            found, detail = await refused(client, **body)
            assert found == field
            assert text in detail
        assert (await client.get("/api/v1/submissions")).json()["items"] == []


@pytest.mark.parametrize(
    "names",
    [["secret/1.out", "secret/2.out"], ["1.out", "2.out"], ["exact/secret/1.out", "exact/secret/2.out"]],
    ids=["exact", "file name", "below a folder"],
)
async def test_output_files_are_named_as_the_tests(api_on_both: AsgiApp, names: list[str]) -> None:
    await publish_problem(api_on_both, output_only_problem("secret/1", "secret/2", "secret/3"))
    async with api_on_both.as_role("contestant") as client:
        body = {"problem": "sum", "files": listed({names[0]: "one", names[1]: "two"})}
        answer = await client.post("/api/v1/submissions", json=body)
        assert answer.status_code == 202, answer.text
        submission_id = answer.json()["submission_id"]
        assert await accepted_files(client, submission_id) == {"secret/1.out": "one", "secret/2.out": "two"}
        assert (await client.get(f"/api/v1/submissions/{submission_id}")).json()["language"] == ""
        shown = (await client.get("/api/v1/problems/sum")).json()
        assert shown["output_names"] == ["secret/1.out", "secret/2.out", "secret/3.out"]


async def test_single_output_needs_no_name(api: AsgiApp) -> None:
    await publish_problem(api, output_only_problem("secret/1"))
    async with api.as_role("contestant") as client:
        answer = await client.post("/api/v1/submissions", json={"problem": "sum", "source": "42\n"})
        assert await accepted_files(client, answer.json()["submission_id"]) == {"secret/1.out": "42\n"}


async def test_invalid_output_files_are_refused(api: AsgiApp) -> None:
    await publish_problem(api, output_only_problem("a/1", "b/1", "b/2"))
    async with api.as_role("contestant") as client:
        cases: list[tuple[dict[str, Any], str, str]] = [
            ({"files": listed({"3.out": ""})}, "files", "3.out: no test has this output file; expected names: a/1.out"),
            ({"files": listed({"1.out": ""})}, "files", "1.out: no test has"),
            ({"files": listed({"2.out": "", "b/2.out": ""})}, "files", "are both the output of b/2.out"),
            ({"source": "1"}, "source", "no test has"),
            ({"files": listed({"2.out": ""}), "entry_point": "x"}, "entry_point", "takes output files"),
        ]
        for body, field, text in cases:
            found, detail = await refused(client, **body)
            assert (found, text in detail) == (field, True), detail


async def test_output_only_problem_may_have_more_tests_than_files_are_allowed(api: AsgiApp) -> None:
    names = [f"secret/{n}" for n in range(60)]
    await publish_problem(api, output_only_problem(*names))
    async with api.as_role("contestant") as client:
        files = listed({f"{name}.out": "1" for name in names})
        answer = await client.post("/api/v1/submissions", json={"problem": "sum", "files": files})
        assert answer.status_code == 202, answer.text


async def test_large_submissions_are_blobs(api: AsgiApp) -> None:
    problem: PublishedProblem = await publish_problem(api)
    async with problem.user_client() as client:
        files = {"a.py": "1", "b.txt": "x" * 90_000}
        made = await problem.submit(client, source=None, language="python3", files=listed(files))
        assert await accepted_files(client, made["submission_id"]) == files
        task = await api.store.database.read(lambda tx: find_judge_task(tx, made["submission_id"]))
        assert task.source_text is None
