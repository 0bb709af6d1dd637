"""State machines: every transition is legal or rejected, unknown values are named."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from adjudge.domain.errors import InvalidStatus, InvalidTransition
from adjudge.domain.states import CHAIN_RUN, JOB, NODE, STATE_MACHINES, SUBMISSION, StateMachine

PAIRS = [
    (machine, source, target) for machine in STATE_MACHINES for source, target in product(machine.statuses, repeat=2)
]
DESIGN = {
    "job": """pending>queued queued>running running>succeeded running>failed running>canceled pending>running
        running>pending running>running queued>pending pending>canceled queued>canceled pending>failed queued>failed""",
    "submission": """pending>judging judging>accepted judging>wrong_answer judging>error pending>canceled
        judging>canceled""",
    "chain run": """pending>running running>success running>failed pending>stopping running>stopping stopping>stopped
        failed>running stopped>running""",
}


@pytest.mark.parametrize(("machine", "source", "target"), PAIRS, ids=lambda value: getattr(value, "name", str(value)))
def test_every_transition_is_legal_or_rejected(machine: StateMachine[Any], source: str, target: str) -> None:
    listed = any((edge.source, edge.target) == (source, target) for edge in machine.edges)
    assert machine.allows(source, target) is listed
    if listed:
        machine.check(source, target)
        return
    with pytest.raises(InvalidTransition) as refused:
        machine.check(source, target)
    assert refused.value.code == "INVALID_TRANSITION"
    assert refused.value.fields == {"source": source, "target": target}


@pytest.mark.parametrize("machine", [JOB, SUBMISSION, CHAIN_RUN], ids=lambda machine: machine.name)
def test_documented_transitions(machine: StateMachine[Any]) -> None:
    assert {f"{edge.source}>{edge.target}" for edge in machine.edges} == set(DESIGN[machine.name].split())


@pytest.mark.parametrize("machine", STATE_MACHINES, ids=lambda machine: machine.name)
def test_unknown_status_error_lists_statuses(machine: StateMachine[Any]) -> None:
    for status in machine.statuses:
        assert machine.parse(str(status)) is status
    for unknown in ("", "PENDING", "done", "x" * 1_000):
        with pytest.raises(InvalidStatus, match=f"use one of {machine.initial}, ") as refused:
            machine.parse(unknown)
        assert refused.value.code == "INVALID_STATUS"
        assert len(str(refused.value)) < 250


@pytest.mark.parametrize("machine", STATE_MACHINES, ids=lambda machine: machine.name)
def test_state_machine_is_complete(machine: StateMachine[Any]) -> None:
    pairs = [(edge.source, edge.target) for edge in machine.edges]
    assert len(pairs) == len(set(pairs)), "an edge is written once"
    assert all(edge.cause for edge in machine.edges)
    known = set(machine.statuses.__members__.values())
    reached = {machine.initial}
    for _ in known:
        reached |= {target for source, target in pairs if source in reached}
    assert reached == known, "every status can be reached"
    leaves = {source for source, _ in pairs}
    assert machine.terminal >= known - leaves, "what cannot be left is terminal"


def test_jobs_and_submissions_never_leave_a_terminal_status() -> None:
    for machine in (JOB, SUBMISSION):
        assert not {edge.source for edge in machine.edges} & machine.terminal


def test_node_can_be_completed_and_retried_manually() -> None:
    edges = {f"{edge.source}>{edge.target}" for edge in NODE.edges}
    assert {"failed>retrying", "stopped>retrying", "failed>success", "stopped>success", "skipped>pending"} <= edges


def test_diagram_shows_every_transition() -> None:
    lines = SUBMISSION.mermaid().splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> pending"]
    assert "    judging --> accepted: verdict AC" in lines
    assert "    canceled --> [*]" in lines
    assert len(lines) == 2 + len(SUBMISSION.edges) + len(SUBMISSION.terminal)
