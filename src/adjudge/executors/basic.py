"""``noop`` and ``sleep``: nodes that do nothing, immediately or after a delay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adjudge.chains.executor import NodeContext, NodeResult, NodeWaiting
from adjudge.store import Database
from adjudge.store.chains import waits


class NoopExecutor:
    """Does nothing and succeeds; its artifact is what `artifact` says. Good for joining branches and naming values."""

    type: ClassVar[str] = "noop"
    is_instant: ClassVar[bool] = True
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"artifact": {"description": "Any JSON value; templates make it a value for dependents."}},
        "additionalProperties": False,
    }

    async def execute(self, context: NodeContext) -> NodeResult:
        return NodeResult(context.cfg.get("artifact"))


class SleepExecutor:
    """Waits for a while, or until a timestamp. It holds no worker meanwhile, survives restarts, and ends when stopped.

    Timestamps are compared with the database's clock, because the clocks of workers may differ.
    """

    type: ClassVar[str] = "sleep"
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "seconds": {"type": "number", "minimum": 0, "maximum": 31_536_000, "description": "How long."},
            "until_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": 253_402_300_799_999,
                "description": "Or until when: Unix time in milliseconds.",
            },
        },
        "oneOf": [{"required": ["seconds"]}, {"required": ["until_ms"]}],
        "additionalProperties": False,
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def execute(self, context: NodeContext) -> NodeWaiting:
        """Set the timer; later attempts keep the time that the first one set."""
        until_ms = context.checkpoint.get("until_ms") if isinstance(context.checkpoint, dict) else None
        if until_ms is None:
            until_ms = context.cfg.get("until_ms")
        if until_ms is None:
            until_ms = await self._database.read(waits.now_ms) + round(context.cfg["seconds"] * 1_000)
            await context.save_checkpoint({"until_ms": until_ms})
        key = f"{context.run_id}/{context.node_id}/{context.attempt}"
        return NodeWaiting("timer", key, artifact={"until_ms": until_ms}, until_ms=until_ms)
