"""Pages of contestants and setters, as the server renders them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.cache.policies import CacheEntity
from adjudge.domain.verdict import Verdict
from adjudge.registry.driver import ProcessHealth, ProcessInfo
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import Judgement
from adjudge.web.mathml import render_math
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.problem_packages import icpc_package, import_package, run_pending_imports, zip_files
from tests.support.published_problem import PublishedProblem, publish_problem, result_document
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness

HOSTILE = '<script>alert("x")</script>'


class _Scripts(HTMLParser):
    """Finds what a browser would run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._inside = tag == "script"
        if tag == "script" and not (named.get("src") or "").startswith("/static/"):
            self.inline.append(str(attrs))
        self.inline += [f"{tag} {name}" for name in named if name.startswith("on") or name == "style"]

    def handle_data(self, data: str) -> None:
        if self._inside and data.strip():
            self.inline.append(data)


async def _shown(client: httpx.AsyncClient, path: str, status: int = 200) -> str:
    answer = await client.get(path)
    assert answer.status_code == status, answer.text[:500]
    assert _Scripts(answer.text).inline == []
    return answer.text


@pytest.fixture
async def published_problem(pages: AsgiApp) -> PublishedProblem:
    return await publish_problem(pages)


async def test_problem_list_can_be_searched(pages: AsgiApp, tmp_path: Path) -> None:
    _, setter = await pages.user("setter")
    for slug, title in (("sum", f"Sum {HOSTILE}"), ("trees", "Many Trees")):
        data = zip_files(icpc_package(f'"{title}"' if "<" not in title else "Sum"))
        await import_package(pages, tmp_path, setter, data, slug=slug, title=title, publish=True, tag=["easy"])
    async with pages.client() as visitor:
        assert (await visitor.get("/")).headers["Location"] == "/problems"
        every = await _shown(visitor, "/problems")
        assert "Many Trees" in every
        assert "&lt;script&gt;" in every
        found = await _shown(visitor, "/problems?q=tree")
        assert ("/problems/trees" in found, "/problems/sum" in found) == (True, False)
        assert 'class="empty"' in await _shown(visitor, "/problems?q=nothing")


async def test_problem_shows_statement_formulas_and_samples(pages: AsgiApp, tmp_path: Path) -> None:
    _, setter = await pages.user("setter")
    files = {"statement/problem.en.md": f"Add $a_1$ and <b onclick=x>b</b> {HOSTILE} $$\\text{{{HOSTILE}}}$$\n"}
    await import_package(pages, tmp_path, setter, zip_files(icpc_package("Sum", **files)), slug="sum", publish=True)
    async with pages.client() as visitor, pages.as_role("contestant") as contestant:
        shown = await _shown(visitor, "/problems/sum")
        assert "<msub><mi>a</mi><mn>1</mn></msub>" in shown
        assert 'id="sample-in-1"' in shown
        assert "/login?next=/problems/sum" in shown
        assert "<textarea" in await _shown(contestant, "/problems/sum")
        assert "PROBLEM_NOT_FOUND" in await _shown(visitor, "/problems/none", 404)


@pytest.mark.parametrize(
    "tex",
    [
        r"\text{<img src=x onerror=alert(1)>}",
        r"\href{javascript:alert(1)}{x}",
        "\\frac{",
        "x" * 5_000,
        r"\text{<b>x</b>}",
    ],
)
def test_unsafe_formula_stays_text(tex: str) -> None:
    escaped = tex.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = render_math(f'<p><span class="math inline">{escaped}</span></p>')
    assert _Scripts(shown).inline == []
    assert "<img" not in shown
    assert "href" not in shown.replace("\\href", "")


async def test_program_is_submitted_watched_and_judged(pages: AsgiApp, published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        form = {"language": "cpp20", "source": f"// {HOSTILE}\r\nint main() {{}}\r\n"}
        sent = await client.post("/problems/sum/submit", data=form)
        assert sent.status_code == 303, sent.text
        path = sent.headers["Location"]
        waiting = await _shown(client, path)
        assert "data-live-done" not in waiting
        assert "&lt;script&gt;" in waiting
        job_id = (await pages.store.row("SELECT id FROM jobs"))["id"]
        await published_problem.finish(job_id)
        state = await _shown(client, f"{path}/state")
        assert "data-live-done" in state
        assert "Accepted" in state
        assert path in await _shown(client, "/submissions")
    async with published_problem.user_client() as other_user:
        assert (await other_user.get(path)).status_code == 404


async def _judged(published_problem: PublishedProblem, made: dict[str, Any], verdict: Verdict, **changes: Any) -> None:
    """End a run with a document of our own."""
    started = await published_problem.claim(made["job_id"])
    finish = JobResult(started.fence, result={**result_document(verdict), **changes}, typed_result=Judgement(verdict))
    await published_problem.api.store.transact(
        lambda tx: published_problem.api.store.jobs.finish_and_claim_next(tx, [finish])
    )


async def test_compiler_messages_link_to_source_lines(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client, source="int main() {\n  return x;\n}\n")
        log = f"main.cpp:2:10: error: 'x' {HOSTILE}\n/usr/include/stdio.h:2:1: note\ngrader.cpp:2:1: note"
        await _judged(published_problem, made, Verdict.CE, cases=[], compile={"ok": False, "message": "", "log": log})
        shown = await _shown(client, f"/submissions/{made['submission_id']}")
    assert '<a href="#L2">main.cpp:2</a>:10: error: &#39;x&#39; &lt;script&gt;' in shown
    assert shown.count('href="#L') == 1
    assert '<span id="L2">  return x;\n</span>' in shown


async def test_java_source_is_named_after_its_class(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client, language="java", source="public class Sum {\n  int x\n}\n")
        log = "Sum.java:2: error: ';' expected\nGrader.java:2: note"
        await _judged(published_problem, made, Verdict.CE, cases=[], compile={"ok": False, "message": "", "log": log})
        for path in ("", "/state"):
            shown = await _shown(client, f"/submissions/{made['submission_id']}{path}")
            assert '<a href="#L2">Sum.java:2</a>: error' in shown
            assert shown.count('href="#L') == 1


@pytest.mark.parametrize(
    ("verdict", "fields", "links"),
    [
        (Verdict.WA, {"message": "line differs: main.cpp:2"}, 0),
        (Verdict.WA, {"message": "", "author_message": "main.cpp:2 of your output"}, 0),
        (Verdict.RE, {"message": "exit code 1\nmain.cpp:2: assertion failed"}, 1),
        (Verdict.RE, {"message": "", "author_message": "main.cpp:2 of your output"}, 0),
    ],
)
async def test_only_messages_of_the_program_link_to_lines(
    published_problem: PublishedProblem, verdict: Verdict, fields: dict[str, str], links: int
) -> None:
    (sample, _) = result_document(verdict)["cases"]
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client)
        await _judged(published_problem, made, verdict, cases=[{**sample, **fields}])
        shown = await _shown(client, f"/submissions/{made['submission_id']}")
    assert "main.cpp:2" in shown
    assert shown.count('href="#L') == links


async def test_unknown_language_is_an_error_page(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        answer = await client.post("/problems/sum/submit", data={"language": "klingon", "source": "x"})
        assert answer.status_code == 400
        assert "klingon" in answer.text
        empty = await client.post("/problems/sum/submit", data={"language": "cpp20", "source": ""})
        kept = await client.post("/problems/sum/submit", data={"language": "klingon", "source": f"// {HOSTILE}"})
    assert 'role="alert"' in empty.text
    assert re.search(r'<option value="cpp20"[^>]* selected', empty.text)
    assert "// &lt;script&gt;" in kept.text, "nothing that was typed is lost"


async def test_language_without_worker_is_disabled(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(sqlite_store, tmp_path, {"admission.health_gate": True}) as api:
        add_pages(api.app, api.services)
        published_problem = await publish_problem(api)
        await api.services.ops.registry.register(
            ProcessInfo("w-1", "host", 1, "1", 1, {"python3": "3"}, health=ProcessHealth.READY)
        )
        async with published_problem.user_client() as client:
            page = await _shown(client, "/problems/sum?language=cpp20")
            refused = await client.post("/problems/sum/submit", data={"language": "cpp20", "source": "kept"})
    options = dict(re.findall(r'<option value="(\w+)" data-extensions="[^"]*" data-entry-point="[^"]*"([^>]*)>', page))
    assert (options["cpp20"], options["python3"]) == (" disabled", "")
    assert (refused.status_code, "No online worker supports cpp20" in refused.text, "kept" in refused.text) == (
        503,
        True,
        True,
    )


async def test_all_languages_are_enabled_while_no_worker_is_online(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(sqlite_store, tmp_path, {"admission.health_gate": True}) as api:
        add_pages(api.app, api.services)
        async with (await publish_problem(api)).user_client() as client:
            assert " disabled" not in await _shown(client, "/problems/sum")


async def test_submission_list_filters(pages: AsgiApp, published_problem: PublishedProblem) -> None:
    async with (
        published_problem.user_client() as client,
        pages.client(published_problem.setter_token) as setter,
        published_problem.user_client("judge") as judge,
    ):
        mine = (await published_problem.submit(client))["submission_id"]
        assert mine in await _shown(client, "/submissions?problem=sum&language=cpp20")
        assert "No matching submissions" in await _shown(client, "/submissions?verdict=WA")
        assert "Not found: problem" in await _shown(client, "/submissions?problem=nothing", 404)
        assert mine in await _shown(setter, "/submissions?all=1&problem=sum"), "to a problem of their own"
        assert mine not in await _shown(setter, "/submissions?all=1")
        name = (await client.get("/api/v1/me")).json()["name"]
        assert mine in await _shown(judge, f"/submissions?all=1&user={name}")
        assert mine not in await _shown(judge, "/submissions?all=1&user=nobody-here")
        assert mine not in await _shown(client, "/submissions?all=1&user=nobody-here&verdict=WA")


async def test_solved_problem_is_marked_and_links_its_owner_to_manage(
    pages: AsgiApp, published_problem: PublishedProblem
) -> None:
    async with published_problem.user_client() as client, pages.client(published_problem.setter_token) as setter:
        accepted = await published_problem.submit(client)
        assert "✓ solved" not in await _shown(client, "/problems/sum")
        await published_problem.finish(accepted["job_id"])
        solved = await _shown(client, "/problems/sum")
        assert "✓ solved" in solved
        assert "/manage/problems/sum" not in solved
        assert "/manage/problems/sum" in await _shown(setter, "/problems/sum")
        assert "/problems/sum" in await _shown(client, "/me")


async def test_problem_list_shows_progress_and_acceptance_rate(
    pages: AsgiApp, published_problem: PublishedProblem
) -> None:
    async with published_problem.user_client() as client, pages.client() as visitor:
        made = await published_problem.submit(client)
        waiting = await _shown(client, "/problems")
        assert ("tried, not solved</span>" in waiting, ">solved</span>" in waiting) == (False, False)
        await published_problem.finish(made["job_id"], Verdict.WA)
        await _shown(client, f"/submissions/{made['submission_id']}")
        pages.services.problems.cache.invalidate(CacheEntity.PROBLEM_STATS, "all")  # a minute later
        tried = await _shown(client, "/problems")
        assert "tried, not solved</span>" in tried
        assert "0 of 1 submissions accepted" in tried
        problem = await _shown(client, "/problems/sum")
        assert ("tried, not solved</span>" in problem, "0 of 1 submissions accepted" in problem) == (True, True)
        assert "/problems/sum" in await _shown(client, "/problems?solved=tried")
        assert "/problems/sum" not in await _shown(client, "/problems?solved=untried")
        again = await published_problem.submit(client)
        await published_problem.finish(again["job_id"])
        await _shown(client, f"/submissions/{again['submission_id']}")
        pages.services.problems.cache.invalidate(CacheEntity.PROBLEM_STATS, "all")
        solved = await _shown(client, "/problems")
        assert ("tried, not solved</span>" in solved, ">solved</span>" in solved) == (False, True)
        assert "50 %" in solved
        assert "/problems/sum" not in await _shown(client, "/problems?solved=tried")
        assert "tried, not solved</span>" not in await _shown(visitor, "/problems?solved=tried"), (
            "visitors have no marks"
        )


async def test_problem_status_depends_on_all_submissions_not_on_the_latest(
    published_problem: PublishedProblem,
) -> None:
    marks = ("tried, not solved</span>", "✓ solved")
    async with published_problem.user_client() as client:

        async def marked_below_later(verdict: Verdict) -> tuple[bool, ...]:
            await published_problem.finish((await published_problem.submit(client))["job_id"], verdict)
            for _ in range(5):
                waiting = (await published_problem.submit(client))["submission_id"]
                assert (await client.post(f"/api/v1/submissions/{waiting}:cancel", json={})).status_code == 200
            page = await _shown(client, "/problems/sum")
            return tuple(mark in page for mark in marks)

        assert await marked_below_later(Verdict.CE) == (True, False)
        assert await marked_below_later(Verdict.AC) == (False, True)


async def test_internal_error_page_shows_the_request_id(pages: AsgiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("adjudge.services.problems.ProblemService.list_problems", broken)
    async with pages.client() as visitor:
        failed = await _shown(visitor, "/problems", 500)
        assert "Internal error" in failed
        assert "script&gt;" not in failed
        assert "Invalid input" in await _shown(visitor, "/problems?sort=upwards", 400)


async def test_only_known_flash_messages_are_shown(pages: AsgiApp) -> None:
    async with pages.as_role("contestant") as client:
        sent = await client.post("/me", data={"display_name": "Ada"})
        assert sent.headers["Location"] == "/me?done=saved"
        assert "Saved." in await _shown(client, "/me?done=saved")
        assert "pwned" not in await _shown(client, "/me?done=pwned")


async def test_setter_uploads_compares_and_publishes(pages: AsgiApp, tmp_path: Path) -> None:
    _, token = await pages.user("setter")
    async with pages.client(token) as setter, pages.client() as visitor:
        assert 'class="empty"' in await _shown(setter, "/manage")
        for hint in ("One.", "Two."):
            data = zip_files(icpc_package("Sum", **{"attachments/hint.txt": f"{hint}\n"}))
            sent = await setter.post("/manage/import", data={"slug": "sum"}, files={"package": ("sum.zip", data)})
            assert sent.status_code == 303, sent.text
            assert "data-live-done" not in await _shown(setter, sent.headers["Location"])
            await run_pending_imports(pages, tmp_path)
            assert "data-live-done" in await _shown(setter, f"{sent.headers['Location']}/state")
        assert "<ins>+Two.</ins>" in await _shown(setter, "/manage/problems/sum/diff?old=1&new=2")
        await _shown(setter, "/manage/problems/sum/revisions/2")
        await _shown(visitor, "/problems/sum", 404)
        body = {"version": "1", "revision": "2", "reason": "first"}
        assert (await setter.post("/manage/problems/sum/publish", data=body)).status_code == 303
        await _shown(visitor, "/problems/sum")
        assert "Revision 2" in await _shown(setter, "/manage/problems/sum")
        stale = await setter.post("/manage/problems/sum/withdraw", data={"version": "1", "reason": "x"})
        assert stale.status_code == 409


async def test_invalid_archive_is_reported_in_the_upload_form(pages: AsgiApp) -> None:
    async with pages.as_role("setter") as setter:
        answer = await setter.post("/manage/import", files={"package": ("a.txt", b"hello")})
    assert answer.status_code == 400
    assert "ZIP" in answer.text


@pytest.mark.parametrize("path", ["/manage", "/me", "/submissions"])
async def test_visitors_are_redirected_to_login(pages: AsgiApp, path: str) -> None:
    async with pages.client() as visitor:
        assert (await visitor.get(path)).headers["Location"].startswith("/login")
    if path == "/manage":
        async with pages.as_role("contestant") as contestant:
            assert (await contestant.get(path)).status_code == 403
