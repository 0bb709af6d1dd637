"""Pages of registration, participants and imports: forms come back with their values and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness
from tests.unit.web.test_contest_pages import new_contest, shown

SPRING = "/contests/spring"
TEAMS = "teams\t1\n1\t\t\tNull <Pointers>\n"


@pytest.fixture
async def published(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """The application with its pages and the problem "sum"."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield await publish_problem(api)


async def test_registration_by_code_shows_the_error_beside_the_field(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as user:
        await new_contest(organiser, registration="code", registration_code="open sesame")
        assert f"{SPRING}/register" in await shown(user, SPRING)
        assert 'name="code"' in await shown(user, f"{SPRING}/register")
        wrong = await user.post(f"{SPRING}/register", data={"do": "team", "name": "Nulls", "code": "x"})
        assert wrong.status_code == 400
        assert 'id="code-team-error"' in wrong.text
        assert 'value="Nulls"' in wrong.text
        made = await user.post(f"{SPRING}/register", data={"do": "team", "name": "Nulls", "code": "open sesame"})
        assert made.status_code == 200
        assert made.headers["Cache-Control"] == "no-store"
        assert 'id="join-code"' in made.text
        assert "Nulls" in await shown(user, f"{SPRING}/participants")
        left = await user.post(f"{SPRING}/register", data={"do": "leave"})
        assert left.headers["Location"] == f"{SPRING}?done=saved"


async def test_import_is_previewed_confirmed_and_shown(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as user:
        await new_contest(organiser)
        assert (await user.get(f"{SPRING}/import")).status_code == 403
        empty = await organiser.post(f"{SPRING}/import", data={"do": "preview"})
        assert "select at least one file" in empty.text
        bad = {"files": ("teams.tsv", TEAMS + "1\t\t\tB\n")}
        refused = await organiser.post(f"{SPRING}/import", data={"do": "preview"}, files=bad)
        assert "teams.tsv:3" in refused.text
        assert 'value="import"' not in refused.text
        seen = await organiser.post(f"{SPRING}/import", data={"do": "preview"}, files={"files": ("teams.tsv", TEAMS)})
        assert "Null &lt;Pointers&gt;" in seen.text
        assert 'value="import"' in seen.text
        assert "Null" not in await shown(user, f"{SPRING}/participants")
        accounts = "accounts\t1\nteam\tNulls\tteam1\t\n"
        body = {"do": "import", "file_name": ["teams.tsv", "accounts.tsv"], "file_text": [TEAMS, accounts]}
        done = await organiser.post(f"{SPRING}/import", data=body)
        assert (done.status_code, done.headers["Cache-Control"]) == (200, "no-store")
        assert "account-card" in done.text
        assert "Null &lt;Pointers&gt;" in await shown(user, f"{SPRING}/participants")


async def test_organiser_edits_and_removes_a_participant(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        body = {"do": "import", "file_name": "teams.tsv", "file_text": TEAMS}
        assert (await organiser.post(f"{SPRING}/import", data=body)).status_code == 200
        page = await shown(organiser, f"{SPRING}/participants/1")
        assert 'value="Null &lt;Pointers&gt;"' in page
        form = {"name": "Nulls", "kind": "unofficial", "extra_min": "x", "version": "1"}
        refused = await organiser.post(f"{SPRING}/participants/1", data=form)
        assert 'id="extra_min-error"' in refused.text
        assert 'value="Nulls"' in refused.text
        form |= {"extra_min": "15", "disqualified": "1"}
        saved = await organiser.post(f"{SPRING}/participants/1", data=form)
        assert saved.status_code == 303, saved.text
        page = await shown(organiser, f"{SPRING}/participants")
        assert "disqualified" in page
        removed = await organiser.post(f"{SPRING}/participants/1/remove")
        assert removed.headers["Location"] == f"{SPRING}/participants?done=deleted"
