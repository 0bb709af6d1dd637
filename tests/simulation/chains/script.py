"""What nodes do: written down for each before the story begins, by the seed alone, and carried out by an executor.

The executor is registered as any other is, by an entry point, and sees what any other would see. What it is shown is
checked at once: nothing in the rows tells afterwards which checkpoint an attempt was given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from random import Random
from typing import Any, ClassVar, Final

from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.chains.executor_registry import GROUP, ExecutorRegistry, discover_executors
from adjudge.domain.errors import InvalidInput, NodeFailed
from tests.simulation.world import Process, World

ALWAYS: Final = 1_000
"""More attempts than anybody makes."""
SCRIPTED: Final = "the script says so"
_STUBBORN_S: Final = 40.0
_USED: Final = ("chain", "sleep", "wait_approval")


@dataclass(frozen=True, slots=True)
class NodeScript:
    """What one node does."""

    fails: int
    """So many attempts fail before one succeeds."""
    refuses: bool
    """It fails for good at its first attempt that is not a failing one."""
    value: int
    """What conditions of its dependents look at."""
    items: tuple[int, ...]
    """What a mapped dependent runs over."""
    keeps: bool
    """It keeps a checkpoint."""
    heeds: str
    """What it does when its run is to stop: ``ends`` well, ``breaks`` off, goes on, or is ``stubborn`` about it."""


@dataclass(frozen=True, slots=True)
class Script:
    """All acts of a seed."""

    seed: int

    def act(self, salt: int, chain: str, node_id: str) -> NodeScript:
        """What a node does in the runs that were started with ``salt``."""
        random = Random(f"{self.seed}/{salt}/{chain}/{node_id}")  # a story, no secret
        return NodeScript(
            fails=random.choices((0, 1, 2, ALWAYS), (12, 3, 1, 2))[0],
            refuses=random.random() < 0.04,
            value=random.randrange(4),
            items=tuple(range(random.randrange(4))),
            keeps=random.random() < 0.5,
            heeds=random.choice(("ends", "breaks", "goes on", "stubborn")),
        )

    def approves(self, salt: int, chain: str, node_id: str) -> bool:
        """What is answered to a node that asks."""
        return self.act(salt, chain, node_id).value > 0


@dataclass
class ScriptContext:
    """Where the nodes of one process act."""

    process: Process
    script: Script
    saved: dict[tuple[str, str], int]
    """By run and node, for all processes: the last attempt whose checkpoint is known to be kept."""

    @property
    def world(self) -> World:
        """The world around it."""
        return self.process.world

    def complain(self, context: NodeContext, what: str) -> None:
        """Say what an attempt should not have met."""
        self.world.violations.append(f"{context.run_id}/{context.node_id}, attempt {context.attempt}: {what}")

    def look(self, context: NodeContext) -> None:
        """An attempt is given what an earlier one kept, and the latest of it."""
        given = context.checkpoint["attempt"] if context.checkpoint else 0
        key = (context.run_id, context.node_id)
        latest = self.world.query("SELECT attempt FROM chain_nodes WHERE run_id = ? AND node_id = ?", *key)[0][
            "attempt"
        ]
        if given >= context.attempt:
            self.complain(context, f"was given a checkpoint of attempt {given}")
        if given < self.saved.get(key, 0) and latest == context.attempt:  # one that froze may begin when it is too late
            self.complain(context, f"was given the checkpoint of attempt {given}, there was a later one")

    async def save(self, context: NodeContext) -> None:
        """Keep a checkpoint."""
        await context.save_checkpoint({"attempt": context.attempt})
        key = (context.run_id, context.node_id)
        self.saved[key] = max(context.attempt, self.saved.get(key, 0))


class InstantScriptedExecutor:
    """Does as the script says, at once."""

    type: ClassVar[str] = "light"
    is_instant: ClassVar[bool] = True
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"item": {}},
        "additionalProperties": False,
    }

    def __init__(self, stage: ScriptContext) -> None:
        self._stage = stage

    async def execute(self, context: NodeContext) -> NodeResult:
        """Act."""
        act = self._act(context)
        self._stage.look(context)
        return self._end(context, act)

    def _act(self, context: NodeContext) -> NodeScript:
        return self._stage.script.act(context.parameters["salt"], context.chain_name, context.node_id)

    def _end(self, context: NodeContext, act: NodeScript) -> NodeResult:
        if context.attempt <= act.fails:
            raise NodeFailed(SCRIPTED)
        if act.refuses:
            raise InvalidInput(SCRIPTED)
        return NodeResult(
            {
                "attempt": context.attempt,
                "value": act.value,
                "items": list(act.items),
                "item": context.cfg.get("item"),
                "seen": dict(context.artifacts),
            }
        )


class ScriptedExecutor(InstantScriptedExecutor):
    """Does as the script says, after a while."""

    type: ClassVar[str] = "scripted"
    is_instant: ClassVar[bool] = False

    async def execute(self, context: NodeContext) -> NodeResult:
        """Act, unless run_stopping."""
        act, process = self._act(context), self._stage.process
        self._stage.look(context)
        random = process.world.random
        # Most are quick; some, and all that follow a failed attempt, take long enough for a zombie to wake meanwhile.
        is_long = context.attempt > 1 or random.random() < 0.2
        for seconds in (random.random(), random.random() * (8 if is_long else 2)):
            if act.keeps:
                await self._stage.save(context)
            await self._pass(context, act, seconds)
        await process.still_here()
        return self._end(context, act)

    async def _pass(self, context: NodeContext, act: NodeScript, seconds: float) -> None:
        """Let time go by; heed an order to stop, or not."""
        if act.heeds == "goes on":
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await context.stop_requested.wait()
        if context.stop_requested.is_set() and act.heeds == "breaks":
            raise NodeFailed(SCRIPTED)
        if context.stop_requested.is_set() and act.heeds == "stubborn":
            await asyncio.sleep(_STUBBORN_S)


def registry() -> ExecutorRegistry:
    """Return the executors of scenarios: some built-in ones and the scripted ones."""
    ours = [
        EntryPoint(each.type, f"{__name__}:{each.__name__}", GROUP)
        for each in (InstantScriptedExecutor, ScriptedExecutor)
    ]
    installed = discover_executors()
    return ExecutorRegistry(
        {name: installed.executors[name] for name in _USED} | dict(discover_executors(ours).executors)
    )
