"""``rejudge``: judges submissions again, previews the changes, and applies or discards them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from adjudge.chains.executor import NodeContext, NodeResult, NodeWaiting, WaitResult
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Permission
from adjudge.executors.impersonation import find_chain_run_principal, resolve_user_id
from adjudge.store import Database, Tx
from adjudge.store.contests import queries as contest_queries
from adjudge.store.judging import rejudge
from adjudge.store.judging.models import NewRejudgeBatch, RejudgeSelection, RevisionChoice, VerdictPolicy
from adjudge.store.judging.rejudge import RejudgeCommands
from adjudge.store.problems import queries as problem_queries

WAIT_REJUDGE: Final = "rejudge"
"""The kind of wait of ``rejudge`` nodes with the action ``preview``."""
_ABANDONED_STATES: Final = ("discarded", "canceled")


class RejudgeExecutor:
    """Judges submissions again, in two steps: `preview` makes a batch and waits until it is judged, `apply` applies it.

    Nobody sees a new verdict before it is applied. The artifact of a preview has `batch_id`, `total`, `changes` (how
    many verdicts would change) and `differences` (old, new, count); where no submission matches, `batch_id` is null and
    applying it does nothing. The artifact of an application has `batch_id`, `changed`, `kept` and `skipped`. `discard`
    lets everything stay as it is.
    """

    type: ClassVar[str] = "rejudge"
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "action": {"enum": ["preview", "apply", "discard"], "description": "What to do."},
            "contest": {"type": "string", "description": "Of a preview: the submissions of a contest, by slug or id."},
            "problem": {"type": "string", "description": "Of a preview: those to a problem, by slug or id."},
            "submission_ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 20_000,
                "description": "Of a preview: these submissions.",
            },
            "language": {"type": "string", "description": "Of a preview: only those in a language."},
            "verdict": {"type": "string", "description": "Of a preview: only those with a verdict."},
            "policy": {
                "enum": [item.value for item in VerdictPolicy],
                "description": "Which new verdicts replace old ones; latest where it is left out.",
            },
            "revision": {
                "enum": [item.value for item in RevisionChoice],
                "description": "Against which test data; current where it is left out.",
            },
            "user": {"type": "string", "description": "Owner of the batch. Default: the user who started the run."},
            "batch_id": {"type": ["string", "null"], "description": "Of apply and discard: the batch."},
            "skip_changed": {
                "type": "boolean",
                "description": "Of apply: leave alone what changed meanwhile, instead of refusing; false otherwise.",
            },
            "reason": {"type": "string", "maxLength": 1000, "description": "Why; kept with the batch."},
        },
        "required": ["action"],
        "oneOf": [
            {
                "properties": {"action": {"const": "preview"}},
                "anyOf": [{"required": ["contest"]}, {"required": ["problem"]}, {"required": ["submission_ids"]}],
                "not": {"required": ["batch_id"]},
            },
            {"properties": {"action": {"enum": ["apply", "discard"]}}, "required": ["batch_id"]},
        ],
        "additionalProperties": False,
    }

    def __init__(self, database: Database, rejudging: RejudgeCommands) -> None:
        self._database, self._rejudging = database, rejudging

    async def execute(self, context: NodeContext) -> NodeResult | NodeWaiting:
        """Carry out the configured action."""
        starter = await find_chain_run_principal(self._database, context)
        if context.cfg["action"] == "preview":
            starter.require(Permission.REJUDGE_WRITE, "rejudge")
            return await self._preview(context)
        starter.require(Permission.REJUDGE_APPLY, "apply or discard what was rejudged")
        batch_id = context.cfg["batch_id"]
        if batch_id is None:
            return NodeResult({"batch_id": None, "changed": 0, "kept": 0, "skipped": 0})
        if context.cfg["action"] == "apply":
            return NodeResult(await self._database.transact(lambda tx: self._apply(tx, context, batch_id)))
        await self._database.transact(lambda tx: self._discard(tx, context, batch_id))
        return NodeResult({"batch_id": batch_id})

    async def _preview(self, context: NodeContext) -> NodeResult | NodeWaiting:
        """Create one batch, even over several attempts: its id is saved in the checkpoint before it is used."""
        kept = context.checkpoint if isinstance(context.checkpoint, dict) else {}
        batch_id = await self._existing_batch(kept.get("batch_id")) or new_id()
        await context.save_checkpoint({"batch_id": batch_id})
        user_id = await resolve_user_id(self._database, context)
        total = await self._database.transact(lambda tx: self._create(tx, context, batch_id, user_id))
        if total is None:
            await context.log("no submission with a verdict matches")
            return NodeResult({"batch_id": None, "total": 0, "changes": 0, "differences": []})
        await context.log(f"batch {batch_id}: judging {total} submissions again")
        return NodeWaiting(WAIT_REJUDGE, batch_id, artifact={"batch_id": batch_id, "total": total})

    async def _existing_batch(self, batch_id: str | None) -> str | None:
        """The batch of an earlier attempt; None if it was discarded or canceled, so that a new one is made."""
        if batch_id is None:
            return None
        state = await self._database.transact(lambda tx: rejudge.lock_batch_state(tx, batch_id))
        return None if state in _ABANDONED_STATES else batch_id

    async def _create(self, tx: Tx, context: NodeContext, batch_id: str, user_id: str) -> int | None:
        """Create the batch, unless it exists, and return its number of submissions; None if no submission matches."""
        try:
            return (await rejudge.find(tx, batch_id)).total
        except NotFound:
            pass  # the usual case: no earlier attempt created it
        cfg = context.cfg
        wanted = RejudgeSelection(
            ids=tuple(cfg.get("submission_ids", ())),
            problem_id=await _problem_id(tx, cfg["problem"]) if "problem" in cfg else None,
            contest_id=(await contest_queries.find_contest(tx, cfg["contest"])).id if "contest" in cfg else None,
            language=cfg.get("language"),
            verdict=cfg.get("verdict"),
        )
        batch = NewRejudgeBatch(
            id=batch_id,
            created_by=user_id,
            selection=wanted,
            policy=VerdictPolicy(cfg.get("policy", VerdictPolicy.LATEST)),
            revision=RevisionChoice(cfg.get("revision", RevisionChoice.CURRENT)),
            reason=cfg.get("reason") or f"chain {context.chain_name}",
        )
        try:
            return await self._rejudging.create(tx, batch)
        except InvalidInput as error:  # raised before anything was written
            if "no submission" not in error.message:
                raise
            return None

    async def _apply(self, tx: Tx, context: NodeContext, batch_id: str) -> dict[str, Any]:
        batch = await rejudge.find(tx, batch_id)
        if batch.state == "applied":  # by an earlier attempt, or by a user
            return {"batch_id": batch_id, "changed": None, "kept": None, "skipped": None}
        skip = context.cfg.get("skip_changed", False)
        done = await self._rejudging.apply(tx, batch_id, actor=context.actor, skip_changed=skip)
        return {"batch_id": batch_id, "changed": done.changed, "kept": done.kept, "skipped": done.skipped}

    async def _discard(self, tx: Tx, context: NodeContext, batch_id: str) -> None:
        batch = await rejudge.find(tx, batch_id)
        if batch.state != "discarded":
            reason = context.cfg.get("reason") or f"chain {context.chain_name}"
            await self._rejudging.discard(tx, batch_id, actor=context.actor, reason=reason)


async def _problem_id(tx: Tx, name: str) -> str:
    problem = await problem_queries.find(tx, name)
    if problem is None:
        raise NotFound("problem", name)
    return problem.id


async def probe_rejudge_batch(tx: Tx, key: str) -> WaitResult | None:
    """The preview of a batch if all its judge runs have finished: the probe of ``rejudge`` nodes that preview."""
    state = await rejudge.lock_batch_state(tx, key)
    if state == "running":
        return None
    if state not in ("ready", "applied"):
        return WaitResult(success=False, error=f"Rejudge batch {key} is {state or 'gone'}.")
    found = await rejudge.count_verdict_changes(tx, key)
    rows = [
        {"old": item.old_verdict, "new": item.new_verdict, "outcome": item.outcome, "count": item.count}
        for item in found
    ]
    changes = sum(item.count for item in found if item.new_verdict not in (None, item.old_verdict))
    total = sum(item.count for item in found)
    return WaitResult(success=True, artifact={"batch_id": key, "total": total, "changes": changes, "differences": rows})
