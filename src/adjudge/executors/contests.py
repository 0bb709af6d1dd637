"""``contest.unfreeze`` and ``contest.export``: tasks for the end of a contest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar, Final

from adjudge.blobs.driver import BlobStore
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.contests import lifecycle
from adjudge.domain.errors import Conflict, NodeRefused
from adjudge.domain.permissions import Permission
from adjudge.store import Database, Tx
from adjudge.store.contests import queries as contest_queries
from adjudge.store.contests.queries import ExportedSubmission

_CONTEST: Final = {"type": "string", "minLength": 1, "description": "Slug or id of the contest."}


class ContestUnfreezeExecutor:
    """Thaws a contest that has ended for all, so that its public scoreboard shows everything.

    The artifact has `contest_id`, `slug` and `was_frozen`. A contest that still runs fails the node for good.
    """

    type: ClassVar[str] = "contest.unfreeze"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.CHAIN_WRITE,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"contest": _CONTEST},
        "required": ["contest"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def execute(self, context: NodeContext) -> NodeResult:
        """Thaw the scoreboard and record it in the audit log."""

        async def operation(tx: Tx) -> dict[str, Any]:
            contest = await contest_queries.find_contest(tx, context.cfg["contest"])
            try:
                thawed = await lifecycle.thaw(
                    tx, contest.id, actor=context.actor, reason=f"chain {context.chain_name}, run {context.run_id}"
                )
            except Conflict as refused:
                raise NodeRefused(str(refused)) from None
            return {"contest_id": contest.id, "slug": contest.slug, "was_frozen": thawed}

        return NodeResult(await self._database.transact(operation))


class ContestExportExecutor:
    """Writes every submission of a contest into the file store, a line of JSON each, in the order they came.

    Each line has `id`, `user`, `label`, `problem`, `language`, `status`, `verdict`, `score`, `time_ms`, `mem_kb` and
    `submitted_at_ms`. The artifact has `contest_id`, `digest`, `size_bytes`, `submissions` and `verdicts` (a count of
    each).
    """

    type: ClassVar[str] = "contest.export"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.SUBMISSION_READ_ALL,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"contest": _CONTEST},
        "required": ["contest"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    async def execute(self, context: NodeContext) -> NodeResult:
        """Stream the rows into one file; the same rows always give the same file."""
        contest = await self._database.read(lambda tx: contest_queries.find_contest(tx, context.cfg["contest"]))
        verdicts: Counter[str] = Counter()

        async def lines() -> AsyncIterator[bytes]:
            async for page in contest_queries.iter_contest_submissions(self._database, contest.id):
                verdicts.update(row.verdict or row.status for row in page)
                yield b"".join(_line(row) for row in page)

        digest = await self._blobs.put(lines())
        size_bytes = (await self._blobs.stat(digest)).size_bytes
        return NodeResult(
            {
                "contest_id": contest.id,
                "digest": digest,
                "size_bytes": size_bytes,
                "submissions": verdicts.total(),
                "verdicts": dict(sorted(verdicts.items())),
            }
        )


def _line(row: ExportedSubmission) -> bytes:
    document = {
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
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"
