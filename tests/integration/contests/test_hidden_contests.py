"""Which contests lists and statistics must look at: those whose results may be hidden, and no others."""

from __future__ import annotations

import pytest

from adjudge.contests import lifecycle
from adjudge.contests.times import find_unthawed
from adjudge.store import Tx
from adjudge.store.contests import hidden
from tests.support.contest_fixture import ContestFixture, icpc_settings, make_contest
from tests.support.store_harness import StoreHarness

MINUTE_MS = 60_000


async def looked_at(contest: ContestFixture) -> tuple[bool, bool]:
    """Whether the contest is looked at, and whether its results are hidden."""

    async def read(tx: Tx) -> tuple[bool, bool]:
        found = await hidden.open_contests(tx, problem_id=contest.problems[0])
        of_user = await hidden.open_contests_of_user(tx, contest.users[contest.participants[0]])
        assert {item.id for item in of_user} <= {item.id for item in found}
        return bool(found), bool(await find_unthawed(tx, found))

    return await contest.store.database.read(read)


@pytest.mark.parametrize("freeze_ct_us", [None, 240 * 60_000_000])
async def test_final_and_thawed_contest_is_not_looked_at_any_more(
    store: StoreHarness, freeze_ct_us: int | None
) -> None:
    contest = await make_contest(store, settings=icpc_settings(freeze_ct_us=freeze_ct_us))
    contest_id, has_freeze = contest.contest_id, freeze_ct_us is not None
    assert await looked_at(contest) == (True, True)
    await store.clock.advance(301 * MINUTE_MS)
    assert await looked_at(contest) == (True, has_freeze)
    await contest.transact(lambda tx: lifecycle.finalize(tx, contest_id, actor="x", reason=""))
    assert await looked_at(contest) == (has_freeze, has_freeze)
    if has_freeze:
        await contest.transact(lambda tx: lifecycle.thaw(tx, contest_id, actor="x", reason=""))
        assert await looked_at(contest) == (False, False)
    await contest.transact(lambda tx: lifecycle.reopen(tx, contest_id, actor="x", reason="a wrong test"))
    assert await looked_at(contest) == (True, False)
