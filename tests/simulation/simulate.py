"""From a kind and a seed to the list of what went wrong."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from adjudge.observe import logs
from adjudge.store import schema
from tests.simulation import virtual_time
from tests.simulation.chains.scenario import ChainScenario
from tests.simulation.scenario import Scenario
from tests.simulation.submissions.scenario import SubmissionScenario
from tests.simulation.world import FaultProbabilities

KINDS: Final[Mapping[str, type[Scenario]]] = {
    scenario.kind: scenario for scenario in (SubmissionScenario, ChainScenario)
}


def template() -> sqlite3.Connection:
    """An empty database with the schema, to be copied for each seed."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    with engine.connect() as session:
        schema.create(session)
        session.commit()
    return connection


Witness = Callable[[Scenario], None]


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing meanwhile: thousands of simulated mishaps are no news."""
    logs.configure("error", stream=io.StringIO())
    try:
        yield
    finally:
        logs.configure("warning")


def simulate(
    kind: str,
    seed: int,
    connection: sqlite3.Connection,
    odds: FaultProbabilities | None = None,
    witness: Witness | None = None,
) -> list[str]:
    """Run one seed to its end and check it; ``witness`` may look at the world before it is gone."""

    async def play() -> list[str]:
        scenario = KINDS[kind](seed, connection, odds)
        await scenario.run()
        violations = scenario.check()
        if witness is not None:
            witness(scenario)
        scenario.world.connection.close()
        return violations

    return virtual_time.run(play())
