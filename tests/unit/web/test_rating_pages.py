"""The pages and API routes of ratings."""

from __future__ import annotations

from pathlib import Path

from adjudge.relay.rating_updater import RatingUpdater
from tests.integration.contests.test_ratings import finalize, finished_contest
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness


async def test_ranking_list_and_graph_of_a_user(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    contest = await finished_contest(sqlite_store)
    await finalize(contest)
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        async with api.client() as visitor:
            assert "No rated contest is finished yet." in (await visitor.get("/ratings")).text
            await RatingUpdater(sqlite_store.database).run_once()
            ranking = (await visitor.get("/api/v1/ratings", params={"limit": 1})).json()
            assert [item["rank"] for item in ranking["items"]] == [1]
            rest = (await visitor.get("/api/v1/ratings", params={"cursor": ranking["next"]})).json()
            assert [(item["rank"], item["contests"]) for item in rest["items"]] == [(2, 1)]
            assert rest["next"] is None
            name = ranking["items"][0]["user"]
            history = (await visitor.get(f"/api/v1/users/{name}/rating")).json()
            (change,) = history["changes"]
            assert (change["title"], change["rank"], change["old_rating"]) == ("Finals", 1, 1500)
            assert change["rating"] == history["rating"] > 1500
            assert f"/users/{name}/rating" in (await visitor.get("/ratings")).text
            page = await visitor.get(f"/users/{name}/rating")
            assert "<polyline" in page.text
            assert f'href="/contests/{change["contest"]}"' in page.text
            assert str(history["rating"]) in page.text
            for path in ("/users/nobody/rating", f"/users/user-{contest.users[contest.participants[2]]}/rating"):
                assert (await visitor.get(path)).status_code == 404
                assert (await visitor.get(f"/api/v1{path}")).status_code == 404
