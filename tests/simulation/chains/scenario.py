"""A simulated operator's day: chains are started, nodes run, wait, fail and are retried, people meddle."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.engine import ChainEngine
from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.chains.triggers import TriggerCommands, TriggerScheduler
from adjudge.cli.wiring.chains import run_starter
from adjudge.domain.retry import RetryPolicy
from adjudge.executors.wakeups import WAIT_PROBES, fire_chain_finished
from adjudge.relay.periodic import run_periodically
from adjudge.store.accounts import users
from adjudge.store.chains import definitions
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.engine.driver import Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.worker.handler import Handler
from adjudge.worker.handlers.node import NodeHandler
from tests.simulation.chains import checker
from tests.simulation.chains.final_state import FinalState
from tests.simulation.chains.history import GRACE_MS
from tests.simulation.chains.operators import AUTHORITY, PERSON, Operators
from tests.simulation.chains.random_dags import document
from tests.simulation.chains.script import Script, ScriptContext, registry
from tests.simulation.checker import job_trace
from tests.simulation.scenario import Scenario, Timing
from tests.simulation.world import FaultProbabilities, Process, SimulatedDatabase

RUNS = 6
HOUSEKEEPING_MS = 2_000
NO_BLOBS = DirectoryBlobStore(Path(os.devnull))
"""Nothing that nodes leave behind is too large for its row."""
EXECUTORS = registry()


class ChainScenario(Scenario):
    """Jobs of kind ``node``."""

    kind: ClassVar[str] = "chains"
    slots: ClassVar[int] = 3
    tempo: ClassVar[Timing] = Timing(
        faults_until_s=20.0, fault_every_s=2.5, frozen_s=(4.0, 12.0), rest_s=600.0, lease_ms=4_000, heartbeat_ms=1_000
    )

    def __init__(self, seed: int, template: sqlite3.Connection, odds: FaultProbabilities | None = None) -> None:
        super().__init__(seed, template, odds)
        self.world.connection.executescript(checker.WATCH_CHECKPOINTS)
        self.script = Script(seed)
        engine = self._engine()
        self.operators_at_work = Operators(self.world, engine, self._jobs(engine), self.script)
        self.documents: dict[str, dict[str, Any]] = {}
        """The DAG of each chain."""
        self.chains: dict[str, str] = {}
        """Name → id."""
        self.saved: dict[tuple[str, str], int] = {}
        """Run and node → the last attempt whose checkpoint is known to be kept."""

    def _engine(self) -> ChainEngine:
        """An engine, as each process has its own: what it remembers is not shared."""
        return ChainEngine(probes=WAIT_PROBES, on_run_ended=[fire_chain_finished], new_id=self.world.new_id)

    def _jobs(self, engine: ChainEngine) -> JobCommands:
        again = RetryPolicy(base_ms=300)  # a lost worker's nodes are tried again soon, while it may still wake
        return JobCommands(
            {JOB_KIND_NODE: engine.job_listener},
            policy=again,
            new_id=self.world.new_id,
            random_unit=self.world.random.random,
        )

    def make_jobs(self) -> JobCommands:
        return self._jobs(self._engine())

    async def create(self, tx: Tx) -> None:
        """Three chains, of which the second runs the first, and the third starts after the second."""
        await users.insert(tx, users.NewUser(PERSON, PERSON, role="admin"))
        random, below = Random(f"shapes {self.world.seed}"), None  # a story, no secret
        for name, size in (
            ("low", random.randint(1, 3)),
            ("middle", random.randint(2, 7)),
            ("high", random.randint(1, 9)),
        ):
            dag = document(random, size, below)
            check_dag(dag, EXECUTORS)
            made = await definitions.create(
                tx, name=name, dag=dag, actor=PERSON, authority=AUTHORITY, new_id=self.world.new_id
            )
            self.documents[made.id], self.chains[name] = dag, made.id
            below = "low"
        await self._trigger(tx, "low", "delay", {"after_sec": random.randint(1, 12), "parameters": {"salt": 100}})
        after = {"chain_id": self.chains["middle"], "on": random.choice(["success", "failure", "any"])}
        await self._trigger(tx, "low", "chain", {**after, "parameters": {"salt": 101}})

    async def _trigger(self, tx: Tx, chain: str, kind: str, spec: Mapping[str, Any]) -> None:
        triggers = TriggerCommands(new_id=self.world.new_id)
        await triggers.create(
            tx, chain_id=self.chains[chain], name=kind, kind=kind, spec=spec, actor=PERSON, authority=AUTHORITY
        )

    def equip(self, process: Process) -> tuple[JobCommands, Mapping[str, Handler]]:
        database, engine = SimulatedDatabase(process), self._engine()
        parts = {
            "database": database,
            "start_chain": engine.start,
            "stage": ScriptContext(process, self.script, self.saved),
        }
        return self._jobs(engine), {JOB_KIND_NODE: NodeHandler(database, NO_BLOBS, EXECUTORS.build(parts), engine.dags)}

    def schedulers(self) -> int:
        """Two in one seed of three: their idle rounds are the largest cost of a scenario."""
        return 1 if self.world.seed % 3 else 2

    def start_scheduler(self, name: str) -> None:
        super().start_scheduler(name)
        database, engine = SimulatedDatabase(Process(self.world, name)), self._engine()
        rounds = ChainHousekeeping(
            database,
            self._jobs(engine),
            engine,
            name=name,
            settings=HousekeepingOptions(GRACE_MS),
            clock=lambda: self.world.now_us() / 1_000_000,
        )
        self.spawn(run_periodically(rounds.run_once, interval_ms=HOUSEKEEPING_MS))
        self.spawn(TriggerScheduler(database, run_starter(engine), name=name).run())

    async def operators(self) -> None:
        self.spawn(self.operators_at_work.intervene())
        self.spawn(self.operators_at_work.answer())
        await self.operators_at_work.start(self.chains, RUNS)

    def is_idle(self) -> bool:
        unfinished = self.world.query("SELECT 1 FROM chain_runs WHERE finished_at IS NULL LIMIT 1")
        unsettled = self.world.query("SELECT 1 FROM chain_trigger_ticks WHERE state = 'pending' LIMIT 1")
        return not unfinished and not unsettled and super().is_idle()

    def left(self) -> FinalState:
        """Return the final state of the scenario."""
        names = {chain_id: name for name, chain_id in self.chains.items()}
        return FinalState(self.world, self.script, self.documents, names)

    def check(self) -> list[str]:
        return checker.check(self)

    def trace(self) -> list[str]:
        rows = self.world.query(
            "SELECT at, run_id, node_id, from_status, to_status, attempt, actor, reason FROM chain_status_log "
            "ORDER BY id"
        )
        shapes = [f"{name}: {json.dumps(self.documents[chain_id])}" for name, chain_id in self.chains.items()]
        return [*shapes, *job_trace(self), *(repr(tuple(row)) for row in rows)]
