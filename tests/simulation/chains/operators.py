"""The users of a chain scenario: they start runs, intervene in some of them and answer approvals."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from functools import partial
from typing import Final

from adjudge.chains.approval import WAIT_APPROVAL, answer_approval
from adjudge.chains.engine import ChainEngine
from adjudge.domain.authority import Authority, Grant
from adjudge.store.chains.models import Artifact, NewChainRun
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.commands import JobCommands
from tests.simulation.chains.script import Script
from tests.simulation.scenario import retry_until_known
from tests.simulation.world import Process, SimulatedDatabase, World

PERSON: Final = "ann"
AUTHORITY: Final = Authority((Grant(PERSON),))
REPLAYED: Final = "it deserves another try"
_LEFT_MANUALLY: Final = '{"value": 0, "items": [0], "by_hand": true}'
_MANUAL: Final = Artifact(_LEFT_MANUALLY, None, len(_LEFT_MANUALLY))
_MEDDLES: Final = ("retry", "retry", "replay", "complete", "stop")


class Operators:
    """Everybody who is not a program. Runs that they may meddle with are chosen when they are started."""

    def __init__(self, world: World, engine: ChainEngine, jobs: JobCommands, script: Script) -> None:
        self._world = world
        self._engine = engine
        self._jobs = jobs
        self._script = script
        self._database = SimulatedDatabase(Process(world, "api"))
        self.open_to_all: set[str] = set()
        """Keys of runs that anybody meddles with."""

    async def start(self, chains: dict[str, str], number: int) -> None:
        """Start so many runs of any chains, each once, whatever is heard of it."""
        random = self._world.random
        for index in range(number):
            await asyncio.sleep(random.random() * 2.5)
            key, chain_id = f"start-{index}", chains[random.choice(list(chains))]
            if random.random() < 0.4:
                self.open_to_all.add(key)
            wanted = NewChainRun(chain_id, {"salt": index}, idempotency_key=key, actor=PERSON, authority=AUTHORITY)
            await retry_until_known(self._database, partial(self._start, wanted))

    async def _start(self, wanted: NewChainRun, tx: Tx) -> None:
        await self._engine.start(tx, wanted)

    async def intervene(self) -> None:
        """Stop runs, retry and complete nodes, replay dead letters, until all is calm; some of it is refused."""
        random = self._world.random
        while not self._world.calm:
            await asyncio.sleep(random.random() * 2)
            action = random.choice(_MEDDLES)
            runs = [row for row in self._runs() if action != "stop" or row["busy"]]
            mapping = [row for row in runs if row["maps"]] if action == "stop" else []
            if (stopped := self._stopped_maps()) and random.random() < 0.5:
                await retry_until_known(self._database, partial(self._act, "retry", *random.choice(stopped)))
            elif runs:
                run_id = random.choice(mapping if mapping and random.random() < 0.8 else runs)["id"]
                await retry_until_known(self._database, partial(self._act, action, run_id, self._some_node(run_id)))

    def _runs(self) -> list[sqlite3.Row]:
        """Those that anybody meddles with, and whether a job, or an instance of a mapped node, runs in them."""
        rows = self._world.query(
            "SELECT id, idempotency_key, "
            "EXISTS (SELECT 1 FROM jobs WHERE chain_run_id = r.id AND status = 'running') AS busy, "
            "EXISTS (SELECT 1 FROM chain_nodes n WHERE n.run_id = r.id AND status = 'running' "
            "AND parent_id IS NOT NULL) AS maps "
            "FROM chain_runs r ORDER BY id"
        )
        return [row for row in rows if row["idempotency_key"] in self.open_to_all]

    def _stopped_maps(self) -> list[tuple[str, str]]:
        """Mapped nodes that were stopped with their runs, which have stopped."""
        rows = self._world.query(
            "SELECT DISTINCT n.run_id, n.node_id, r.idempotency_key FROM chain_nodes n "
            "JOIN chain_nodes i ON i.run_id = n.run_id AND i.parent_id = n.node_id "
            "JOIN chain_runs r ON r.id = n.run_id WHERE n.status = 'stopped' AND r.status = 'stopped' ORDER BY 1, 2"
        )
        return [(row["run_id"], row["node_id"]) for row in rows if row["idempotency_key"] in self.open_to_all]

    def _some_node(self, run_id: str) -> str:
        """Mostly one that has ended badly."""
        random = self._world.random
        rows = self._world.query("SELECT node_id, status FROM chain_nodes WHERE run_id = ? ORDER BY node_id", run_id)
        ended = [row for row in rows if row["status"] in ("failed", "stopped")]
        return str(random.choice(ended if ended and random.random() < 0.8 else rows)["node_id"])

    async def _act(self, action: str, run_id: str, node_id: str, tx: Tx) -> None:
        if action == "stop":
            await self._engine.stop(tx, run_id, actor=PERSON)
        elif action == "retry":
            await self._engine.retry(tx, run_id, node_id, actor=PERSON)
        elif action == "replay":
            await self._jobs.replay(tx, self._letters(run_id, node_id), actor=PERSON, note=REPLAYED)
        else:
            await self._engine.complete(tx, run_id, node_id, actor=PERSON, artifact=_MANUAL)

    def _letters(self, run_id: str, node_id: str) -> list[str]:
        rows = self._world.query(
            "SELECT d.id FROM dead_letters d JOIN jobs j ON j.id = d.job_id "
            "WHERE d.state = 'open' AND j.chain_run_id = ? AND j.node_id = ? ORDER BY d.id",
            run_id,
            node_id,
        )
        return [row["id"] for row in rows]

    async def answer(self) -> None:
        """Answer what is asked, sooner or later."""
        while True:
            await asyncio.sleep(self._world.random.random() * 2)
            asked = self._world.query(
                "SELECT n.run_id, n.node_id, c.name, r.parameters FROM chain_nodes n "
                "JOIN chain_runs r ON r.id = n.run_id JOIN chains c ON c.id = r.chain_id "
                "WHERE n.wait_on = ? ORDER BY n.run_id, n.node_id LIMIT 1",
                WAIT_APPROVAL,
            )
            for row in asked:
                await retry_until_known(self._database, partial(self._decide, row))

    async def _decide(self, row: sqlite3.Row, tx: Tx) -> None:
        approved = self._script.approves(json.loads(row["parameters"])["salt"], row["name"], row["node_id"])
        await answer_approval(
            tx,
            self._engine.resume,
            run_id=row["run_id"],
            node_id=row["node_id"],
            approved=approved,
            actor=PERSON,
            reason="so it was written",
        )
