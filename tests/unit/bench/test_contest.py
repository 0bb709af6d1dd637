"""The contest's benchmark: its contest is a real one, and its verdicts reach the scoreboard."""

from __future__ import annotations

from pathlib import Path

from adjudge.contests.load_board import load_board
from adjudge.store import open_database
from adjudge.store.contests import queries
from adjudge.store.contests.scoreboard import PUBLIC
from bench.contest_fixture import ContestSize, seed_contest
from bench.contest_judge import ContestJudge


async def test_seeded_contest_has_its_rows_and_a_verdict_changes_one(tmp_path: Path) -> None:
    seed = await seed_contest(f"sqlite:///{tmp_path / 'contest.db'}", ContestSize(12, 3, 60))
    async with open_database(seed.url, migrate=False) as database:

        async def read_solved() -> dict[str, int]:
            contest = await database.read(lambda tx: queries.find_contest(tx, seed.contest_id))
            loaded = await database.read(lambda tx: load_board(tx, contest, PUBLIC))
            assert len(loaded.board.problems) == 3
            return {row.participant.id: row.keys.k1 for row in loaded.board.rows}

        before = await read_solved()
        assert len(before) == 12
        assert 0 < sum(before.values()) < 36
        judge = ContestJudge(database, seed)
        assert await judge.prepare(5) == 5
        assert await read_solved() == before
        for _ in range(5):
            await judge.judge()
        after = await read_solved()
        assert sum(after.values()) > sum(before.values())
        assert all(after[key] - before[key] in (0, 1) for key in before)
