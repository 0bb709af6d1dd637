"""``contest.export``: writes the results of a contest into the file store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from adjudge.blobs.driver import BlobStore
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.contests import clock, exports
from adjudge.contests.awards import final_ranks
from adjudge.contests.ccs.live import award_objects
from adjudge.contests.ccs.scoreboard import scoreboard_object
from adjudge.contests.ccs.version import CcsVersion
from adjudge.contests.exports import StateTimes
from adjudge.contests.load_board import load_board
from adjudge.contests.times import load_times
from adjudge.domain.contest import ContestRole
from adjudge.domain.permissions import Permission
from adjudge.executors.contests import CONTEST_CFG
from adjudge.executors.impersonation import find_contest_as
from adjudge.services.awards import award_rules, read_ccs_ids, with_stored
from adjudge.store import Database, Tx
from adjudge.store.contests import awards as award_store
from adjudge.store.contests import queries as contest_queries
from adjudge.store.contests.models import ContestRow
from adjudge.store.contests.queries import ExportedSubmission
from adjudge.store.contests.scoreboard import JURY


class ContestExportExecutor:
    """Writes the submissions, the scoreboard and the awards of a contest into the file store, as the jury sees them.

    The submissions are lines of JSON in the order in which they came, each with `id`, `user`, `label`, `problem`,
    `language`, `status`, `verdict`, `score`, `time_ms`, `mem_kb` and `submitted_at_ms`. The artifact has `contest_id`,
    `digest` and `size_bytes` of that file, `submissions`, `verdicts` (a count of each), and `files`: the digests of
    `scoreboard.json`, `awards.json` and `results.tsv`.
    """

    type: ClassVar[str] = "contest.export"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.CONTEST_JOIN,)
    cfg_schema: ClassVar[Mapping[str, Any]] = CONTEST_CFG

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    async def execute(self, context: NodeContext) -> NodeResult:
        """Stream the rows into one file; the same rows always give the same file."""
        roles = (ContestRole.ORGANISER, ContestRole.JUDGE)
        contest = (await find_contest_as(self._database, context, context.cfg["contest"], *roles)).contest
        verdicts: Counter[str] = Counter()

        async def lines() -> AsyncIterator[bytes]:
            async for page in contest_queries.iter_contest_submissions(self._database, contest.id):
                verdicts.update(row.verdict or row.status for row in page)
                yield b"".join(_line(row) for row in page)

        digest = await self._blobs.put(lines())
        documents = await self._database.read(lambda tx: _documents(tx, contest))
        return NodeResult(
            {
                "contest_id": contest.id,
                "digest": digest,
                "size_bytes": (await self._blobs.stat(digest)).size_bytes,
                "submissions": verdicts.total(),
                "verdicts": dict(sorted(verdicts.items())),
                "files": {name: await self._blobs.put(body) for name, body in documents.items()},
            }
        )


async def _documents(tx: Tx, contest: ContestRow) -> dict[str, bytes]:
    """The result files: name → content."""
    board = (await load_board(tx, contest, JURY)).board
    times = await load_times(tx, contest)
    rows = final_ranks(board, award_rules(contest))
    given = with_stored(board, contest, await award_store.awards(tx, contest.id))
    ended_at = times.ends_for_all_at if times.has_ended_for_all else None
    state = StateTimes(
        started=contest.settings.starts_at,
        frozen=clock.freezes_at(times.timeline),
        ended=ended_at,
        thawed=contest.thaw_at,
        finalized=contest.finalized_at,
        end_of_updates=contest.end_of_updates_at,
    )
    scoreboard = scoreboard_object(
        board,
        rows,
        time_at=ended_at or times.now_us,
        contest_time_us=clock.contest_time(times.timeline, ended_at or times.now_us) or 0,
        state=state,
        version=CcsVersion.V2023_06,
    )
    return {
        "scoreboard.json": _json(scoreboard),
        "awards.json": _json(award_objects(given, await read_ccs_ids(tx, contest.id))),
        "results.tsv": exports.results_tsv(board, rows, given).encode(),
    }


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _line(row: ExportedSubmission) -> bytes:
    return _json(
        {
            "id": row.id,
            "user": row.user_name,
            "label": row.label,
            "problem": row.problem_slug,
            "language": row.language,
            "status": row.status,
            "verdict": row.verdict,
            "score": row.score,
            "time_ms": row.time_ms,
            "mem_kb": row.mem_kb,
            "submitted_at_ms": row.created_at // 1_000,
        }
    )
