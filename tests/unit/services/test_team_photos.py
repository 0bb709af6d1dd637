"""Photos of teams: only pictures, only by organisers, and only for those who see the team."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.services.team_photos import MAX_PHOTO_BYTES
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_app import open_contest
from tests.support.published_problem import publish_problem
from tests.support.store_harness import StoreHarness

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x0dIHDR" + bytes(40)
JPEG = b"\xff\xd8\xff\xe0" + bytes(40)
WEBP = b"RIFF\x30\0\0\0WEBPVP8 " + bytes(40)
TEAM = "/api/v1/contests/spring/participants/team1"


@pytest.fixture
async def api(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    async with make_app(store, tmp_path) as api:
        yield api


@pytest.fixture
async def organiser(api: AsgiApp) -> AsyncIterator[httpx.AsyncClient]:
    """The organiser of a contest with a team."""
    _, token = await api.user("setter")
    async with api.client(token) as client:
        body = {"slug": "spring", "title": "Spring", "duration_sec": 18_000, "starts_at": "2030-01-01T00:00:00Z"}
        for path, document in (("", body), ("/spring/participants", {"code": "team1", "name": "Team"})):
            (await client.post(f"/api/v1/contests{path}", json=document)).raise_for_status()
        yield client


@pytest.mark.parametrize(("data", "media_type"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp")])
async def test_photo_is_served_with_the_type_of_its_content(
    organiser: httpx.AsyncClient, data: bytes, media_type: str
) -> None:
    assert (await organiser.get(f"{TEAM}/photo")).status_code == 404
    saved = await organiser.put(f"{TEAM}/photo", content=data, headers={"Content-Type": "text/html"})
    assert saved.status_code == 204, saved.text
    found = await organiser.get(f"{TEAM}/photo")
    assert (found.content, found.headers["content-type"]) == (data, media_type)
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert (await organiser.delete(f"{TEAM}/photo")).status_code == 204
    assert (await organiser.get(f"{TEAM}/photo")).status_code == 404


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "PNG, JPEG or WebP"),
        (b"<script>alert(1)</script>", "PNG, JPEG or WebP"),
        (b"GIF89a" + bytes(40), "PNG, JPEG or WebP"),
        (b"", "PNG, JPEG or WebP"),
        (PNG + bytes(MAX_PHOTO_BYTES), "at most 4 MiB"),
    ],
)
async def test_anything_else_is_rejected(organiser: httpx.AsyncClient, data: bytes, message: str) -> None:
    refused = await organiser.put(f"{TEAM}/photo", content=data, headers={"Content-Type": "image/png"})
    assert (refused.status_code, message in refused.text) == (400, True), refused.text
    assert (await organiser.get(f"{TEAM}/photo")).status_code == 404


async def test_photo_follows_the_visibility_of_its_team(store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(store, tmp_path) as api, open_contest(await publish_problem(api)) as contest:
        organiser = contest.organiser
        added = await organiser.post("/api/v1/contests/spring/participants", json={"code": "team1", "name": "Team"})
        assert added.is_success, added.text
        (await organiser.put(f"{TEAM}/photo", content=PNG)).raise_for_status()
        _, token = await api.user("contestant")
        async with api.client(token) as other, api.client() as visitor:
            assert (await other.put(f"{TEAM}/photo", content=JPEG)).status_code == 403
            for client in (other, visitor):
                assert (await client.get(f"{TEAM}/photo")).content == PNG
            (await organiser.patch(TEAM, json={"hidden": True})).raise_for_status()
            assert (await organiser.get(f"{TEAM}/photo")).status_code == 200
            for client in (other, visitor):
                hidden, unknown = [await client.get(f"{path}/photo") for path in (TEAM, TEAM.replace("team1", "team2"))]
                assert hidden.status_code == unknown.status_code == 404
                assert hidden.json()["code"] == unknown.json()["code"]


async def test_participant_who_takes_part_alone_has_no_photo(api: AsgiApp, organiser: httpx.AsyncClient) -> None:
    user_id, _ = await api.user("contestant")
    body = {"user": user_id, "name": "Alone", "code": f"p{new_id()[-6:]}"}
    made = (await organiser.post("/api/v1/contests/spring/participants", json=body)).raise_for_status().json()
    refused = await organiser.put(f"/api/v1/contests/spring/participants/{made['id']}/photo", content=PNG)
    assert (refused.status_code, "only teams have photos" in refused.text) == (409, True)
