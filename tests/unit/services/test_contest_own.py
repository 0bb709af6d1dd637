"""Own results and submissions of a contest, on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adjudge.contests.formats.base import Cell
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.permissions import ROLE_PERMISSIONS, Role
from adjudge.domain.verdict import Verdict
from adjudge.services.viewer import AuthMethod, Viewer
from tests.support.asgi_app import make_app
from tests.support.contest_app import ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.store_harness import StoreHarness


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        yield found


async def test_own_submissions_of_all_runs_are_listed_newest_first_by_pages(
    contest: ContestApp, store: StoreHarness
) -> None:
    api = contest.published.api
    user_id, secret = await api.user("contestant")
    await contest.join(user_id, ParticipantKind.OFFICIAL)
    await contest.advance_hours(1)
    viewer = Viewer(user_id, "x", Role.CONTESTANT, ROLE_PERMISSIONS[Role.CONTESTANT], AuthMethod.TOKEN)
    own = api.services.own_contests
    async with api.client(secret) as client, contest.participant() as other:
        first = await succeeded(await contest.submit(client))
        await succeeded(await contest.submit(other))
        await contest.published.finish(first["job_id"], Verdict.AC)
        await contest.advance_hours(6)
        await contest.join(user_id, ParticipantKind.PRACTICE, run_no=1)
        await succeeded(await contest.submit(client))
    view = await api.services.contests.access.find(viewer, "spring")
    items = await own.list_submissions(view, limit=10)
    assert [(item.row.number, item.verdict) for item in items] == [(3, None), (1, Verdict.AC)]
    assert items[1].time_us == 0
    (last,) = await own.list_submissions(view, before=3, limit=10)
    assert last.row.number == 1
    problem_id = contest.published.problem_id
    assert await own.list_submissions(view, problem_id="none", limit=10) == []
    assert len(await own.list_submissions(view, problem_id=problem_id, limit=1)) == 1
    cells = await own.get_cells(view)
    assert cells[problem_id].is_solved


@pytest.mark.parametrize("verdict", [Verdict.AC, Verdict.WA, Verdict.CE])
async def test_number_of_own_submissions_tells_no_verdict(contest: ContestApp, verdict: Verdict) -> None:
    await contest.change(feedback="none")
    api = contest.published.api
    user_id, secret = await api.user("contestant")
    await contest.join(user_id, ParticipantKind.OFFICIAL)
    await contest.advance_hours(1)
    viewer = Viewer(user_id, "x", Role.CONTESTANT, ROLE_PERMISSIONS[Role.CONTESTANT], AuthMethod.TOKEN)
    async with api.client(secret) as client:
        first = await succeeded(await contest.submit(client))
        await succeeded(await contest.submit(client))
    await contest.published.finish(first["job_id"], verdict)
    view = await api.services.contests.access.find(viewer, "spring")
    assert await api.services.own_contests.get_cells(view) == {contest.published.problem_id: Cell(pending=2)}
