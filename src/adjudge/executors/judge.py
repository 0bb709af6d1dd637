"""``judge``: submits a solution and waits for its verdict without holding a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from adjudge.blobs.driver import BlobStore
from adjudge.chains.executor import NodeContext, NodeWaiting, WaitResult
from adjudge.chains.rights import Rights
from adjudge.domain.errors import InvalidInput, NodeRefused, NotFound
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Permission
from adjudge.domain.states import SUBMISSION, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.executors.impersonation import find_chain_run_principal, resolve_user_id
from adjudge.store import Database, Tx
from adjudge.store.contests import queries as contest_queries
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.store.problems import queries as problem_queries

WAIT_SUBMISSION: Final = "submission"
"""The kind of wait of ``judge`` nodes."""
SOURCE_CHARACTERS: Final = 262_144


class JudgeExecutor:
    """Submits a solution to a problem and waits for its verdict.

    The artifact has `submission_id`, `status`, `verdict`, `score`, `time_ms` and `mem_kb`. The node succeeds with
    whatever verdict the program earned, and fails where there is none: judging failed (SE), or it was canceled.
    Whether the verdict is the wanted one is for an `if` of a dependent: `artifacts.this.verdict == "AC"`.
    """

    type: ClassVar[str] = "judge"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.SUBMISSION_CREATE,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "problem": {"type": "string", "description": "Slug or id."},
            "revision_id": {"type": "string", "description": "The revision; the published one where it is left out."},
            "language": {"type": "string", "minLength": 1, "description": "As `adjudge languages` names it."},
            "source": {"type": "string", "maxLength": SOURCE_CHARACTERS, "description": "The program's text."},
            "source_digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "Or its blob."},
            "user": {"type": "string", "description": "User who submits. Default: the user who started the run."},
            "contest": {"type": "string", "description": "Slug or id of a contest that it counts for."},
            "priority": {"type": "integer", "minimum": 0, "maximum": 3, "description": "Its band; 3 is the usual."},
        },
        "required": ["problem", "language"],
        "oneOf": [{"required": ["source"]}, {"required": ["source_digest"]}],
        "additionalProperties": False,
    }

    def __init__(self, database: Database, submissions: SubmissionCommands, blobs: BlobStore) -> None:
        self._database, self._submissions, self._blobs = database, submissions, blobs

    async def execute(self, context: NodeContext) -> NodeWaiting:
        """Submit once, even over several attempts: the id is saved in the checkpoint before it is used."""
        submission_id = await self._earlier_submission(context)
        if submission_id is None:
            submission_id = new_id()
            await context.save_checkpoint({"submission_id": submission_id})
        new = await self._new_submission(context, submission_id)

        async def submit(tx: Tx) -> None:
            if await submission_queries.lock_submission_state(tx, submission_id) is None:
                await self._submissions.submit(tx, [new])

        await self._database.transact(submit)
        await context.log(f"submitted as {submission_id}")
        return NodeWaiting(WAIT_SUBMISSION, submission_id, artifact={"submission_id": submission_id})

    async def _earlier_submission(self, context: NodeContext) -> str | None:
        """The submission of an earlier attempt; None if there is none or it failed, so that a new one is made."""
        kept = context.checkpoint.get("submission_id") if isinstance(context.checkpoint, dict) else None
        if kept is None:
            return None

        async def look(tx: Tx) -> str | None:
            known = await submission_queries.lock_submission_state(tx, kept)
            ended = await probe_submission(tx, kept) if known else None
            return None if ended is not None and not ended.success else str(kept)

        return await self._database.transact(look)

    async def _new_submission(self, context: NodeContext, submission_id: str) -> NewSubmission:
        cfg, user_id = context.cfg, await resolve_user_id(self._database, context)
        starter = await find_chain_run_principal(self._database, context)
        problem_id, revision_id, contest_id = await self._database.read(lambda tx: _target(tx, cfg, starter))
        if "source" in cfg:
            data = cfg["source"].encode()
            digest, size_bytes = await self._blobs.put(data), len(data)
        else:
            digest = cfg["source_digest"]
            size_bytes = (await self._blobs.stat(digest)).size_bytes
        return NewSubmission(
            id=submission_id,
            user_id=user_id,
            problem_id=problem_id,
            revision_id=revision_id,
            language=cfg["language"],
            source_digest=digest,
            source_bytes=size_bytes,
            contest_id=contest_id,
            priority=cfg.get("priority", 3),
            trace_id=context.trace_id,
        )


async def _target(tx: Tx, cfg: Mapping[str, Any], starter: Rights) -> tuple[str, str, str | None]:
    """The problem, revision and contest of a submission; drafts require the right to see them."""
    contest_id = (await contest_queries.find_contest(tx, cfg["contest"])).id if "contest" in cfg else None
    problem = await problem_queries.find(tx, cfg["problem"])
    if problem is None:
        raise NotFound("problem", cfg["problem"])
    sees_draft = starter.sees_draft(problem.owner_id)
    if problem.published_revision_id is None and not sees_draft:
        raise NotFound("problem", cfg["problem"])
    if "contest" in cfg:
        starter.require(Permission.CHAIN_WRITE, "submit to a contest by a chain")
    if "revision_id" in cfg and cfg["revision_id"] != problem.published_revision_id:
        if not sees_draft:
            raise NotFound("revision", cfg["revision_id"])
        revision = await problem_queries.find_revision(tx, cfg["revision_id"])
        if revision.problem_id != problem.id:
            raise InvalidInput("revision_id: that revision is another problem's.", field="revision_id")
        return problem.id, revision.id, contest_id
    if problem.published_revision_id is None:
        raise NodeRefused(f"The problem {problem.slug!r} is not published; publish it, or name a revision_id.")
    return problem.id, problem.published_revision_id, contest_id


async def probe_submission(tx: Tx, key: str) -> WaitResult | None:
    """The result of a submission if it has finished: the probe of ``judge`` nodes."""
    outcome = await submission_queries.lock_submission_state(tx, key)
    if outcome is None:
        return WaitResult(success=False, error=f"Submission {key} is gone.")
    if SubmissionStatus(outcome.status) not in SUBMISSION.terminal:
        return None
    artifact = {
        "submission_id": outcome.id,
        "status": outcome.status,
        "verdict": outcome.verdict,
        "score": outcome.score,
        "time_ms": outcome.time_ms,
        "mem_kb": outcome.mem_kb,
    }
    if outcome.verdict is None or outcome.verdict == Verdict.SE:
        why = "was canceled" if outcome.verdict is None else "could not be judged (SE)"
        return WaitResult(success=False, artifact=artifact, error=f"Submission {key} {why}.")
    return WaitResult(success=True, artifact=artifact)
