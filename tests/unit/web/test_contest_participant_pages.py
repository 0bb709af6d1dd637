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


async def test_organiser_adds_edits_disqualifies_and_removes_participants(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as user:
        await new_contest(organiser)
        name = (await user.get("/api/v1/me")).json()["name"]
        form = {"form": "team", "name": "Null <Pointers>", "code": "1", "kind": "official", "members": "nobody-here"}
        wrong = await organiser.post(f"{SPRING}/add-participant", data=form)
        assert (wrong.status_code, 'id="members-error"' in wrong.text) == (400, True)
        assert 'value="Null &lt;Pointers&gt;"' in wrong.text
        added = await organiser.post(f"{SPRING}/add-participant", data=form | {"members": name, "location": "Seat 7"})
        assert added.headers["Location"] == f"{SPRING}/participants/1?done=saved"
        no_user = await organiser.post(f"{SPRING}/add-participant", data={"form": "user", "kind": "test"})
        assert 'id="user-error"' in no_user.text
        page = await shown(organiser, f"{SPRING}/participants/1")
        assert 'value="Null &lt;Pointers&gt;"' in page
        assert name in page
        form = {"code": "1", "name": "Nulls", "kind": "unofficial", "extra_min": "x", "version": "1", "is_team": "1"}
        refused = await organiser.post(f"{SPRING}/participants/1", data=form)
        assert 'id="extra_min-error"' in refused.text
        assert 'value="Nulls"' in refused.text
        long = await organiser.post(f"{SPRING}/participants/1", data=form | {"version": "9" * 5_000})
        assert (long.status_code, "version" in long.text) == (400, True)
        form |= {"extra_min": "15", "disqualified": "1"}
        silent = await organiser.post(f"{SPRING}/participants/1", data=form)
        assert (silent.status_code, 'id="reason-error"' in silent.text) == (400, True)
        saved = await organiser.post(f"{SPRING}/participants/1", data=form | {"reason": "plagiarism"})
        assert saved.status_code == 303, saved.text
        page = await shown(organiser, f"{SPRING}/participants/1")
        assert "plagiarism" in page
        assert "participant.update" in page
        assert "disqualified" in await shown(user, f"{SPRING}/participants")
        assert (await user.get(f"{SPRING}/participants/1")).status_code == 403
        removed = await organiser.post(f"{SPRING}/participants/1/remove")
        assert removed.headers["Location"] == f"{SPRING}/participants?done=deleted"


async def test_groups_organisations_and_invitations(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.user_client("contestant") as user:
        await new_contest(organiser, registration="invitation")
        for path in ("add-participant", "groups", "organizations", "invitations", "accounts"):
            assert (await user.get(f"{SPRING}/{path}")).status_code == 403, path
            assert "contest-tabs" in await shown(organiser, f"{SPRING}/{path}")
        rows = {"code": ["n", "", "g"], "name": ["North", "", "Guests"], "icpc_id": ["", "", ""], "ranked": "0"}
        saved = await organiser.post(f"{SPRING}/groups", data=rows)
        assert saved.headers["Location"] == f"{SPRING}/groups?done=saved"
        groups = (await organiser.get("/api/v1/contests/spring/groups")).json()["items"]
        assert [(item["code"], item["ranked"]) for item in groups] == [("n", True), ("g", False)]
        twice = await organiser.post(f"{SPRING}/groups", data=rows | {"code": ["n", "", "n"]})
        assert (twice.status_code, "is used twice" in twice.text) == (400, True)
        times = {"group": "n", "extra_min": "15", "reason": "fire alarm"}
        assert (await organiser.post(f"{SPRING}/groups/times", data=times)).status_code == 303
        bad = await organiser.post(f"{SPRING}/groups/times", data=times | {"extra_min": "-1"})
        assert (bad.status_code, "extra_min" in bad.text) == (400, True)
        school = {"code": "un", "name": "University of North", "country": "nor"}
        assert 'id="country-error"' in (await organiser.post(f"{SPRING}/organizations", data=school)).text
        saved = await organiser.post(f"{SPRING}/organizations", data=school | {"country": "NOR"})
        assert saved.status_code == 303
        assert "University of North" in await shown(organiser, f"{SPRING}/organizations")

        wrong = await organiser.post(f"{SPRING}/invitations", data={"kind": "official", "max_uses": "0"})
        assert 'id="max_uses-error"' in wrong.text
        form = {"kind": "unofficial", "max_uses": "2", "note": "guests", "expires_at": "2100-01-01T12:00"}
        made = await organiser.post(f"{SPRING}/invitations", data=form)
        assert (made.status_code, made.headers["Cache-Control"]) == (200, "no-store")
        code = made.text.partition("register?code=")[2][:10]
        page = await shown(organiser, f"{SPRING}/invitations")
        assert "0 / 2" in page
        assert code not in page
        joined = await user.post(f"{SPRING}/register", data={"do": "alone", "code": code})
        assert joined.status_code == 303, joined.text
        invitation = (await organiser.get("/api/v1/contests/spring/invitations")).json()["items"][0]
        revoked = await organiser.post(f"{SPRING}/invitations/{invitation['id']}/revoke")
        assert revoked.status_code == 303
        assert "revoked" in await shown(organiser, f"{SPRING}/invitations")


async def test_accounts_are_printed_once_and_disabled(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser:
        await new_contest(organiser)
        team = {"form": "team", "name": "Nulls", "code": "t7", "kind": "official"}
        assert (await organiser.post(f"{SPRING}/add-participant", data=team)).status_code == 303
        made = await organiser.post(f"{SPRING}/accounts", data={"do": "create", "prefix": "spring-"})
        assert (made.status_code, made.headers["Cache-Control"]) == (200, "no-store")
        assert "account-card" in made.text
        page = await shown(organiser, f"{SPRING}/accounts")
        assert "spring-t7" in page
        assert "account-card" not in page
        renewed = await organiser.post(f"{SPRING}/accounts", data={"do": "renew", "names": "spring-t7"})
        assert (renewed.headers["Cache-Control"], "account-card" in renewed.text) == ("no-store", True)
        disabled = await organiser.post(f"{SPRING}/accounts", data={"do": "disable", "reason": "over"})
        assert disabled.headers["Location"] == f"{SPRING}/accounts?done=saved"
        assert ">disabled<" in await shown(organiser, f"{SPRING}/accounts")
        unknown = await organiser.post(f"{SPRING}/accounts", data={"do": "enable", "names": "somebody"})
        assert (unknown.status_code, 'id="names-error"' in unknown.text) == (400, True)


async def test_list_of_participants_is_paged_with_its_filters(published: PublishedProblem) -> None:
    text = "teams\t1\n" + "".join(f"{number}\t\t\tTeam {number}\n" for number in range(1_000, 1_250))
    async with published.user_client("setter") as organiser, published.user_client("contestant") as user:
        await new_contest(organiser)
        body = {"do": "import", "file_name": "teams.tsv", "file_text": text}
        assert (await organiser.post(f"{SPRING}/import", data=body)).status_code == 200
        path, found = f"{SPRING}/participants?search=team+1", list[int]()
        while path:
            page = await shown(user, path)
            found.append(page.count("<td>") // 4)
            more = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
            assert not more or "search=team+1" in more
            path = f"{SPRING}/participants{more}" if more else ""
        assert found == [100, 100, 50]
        assert "Team 1007" in await shown(user, f"{SPRING}/participants?search=1007")
        assert "Team 1" not in await shown(user, f"{SPRING}/participants?organization=un")
