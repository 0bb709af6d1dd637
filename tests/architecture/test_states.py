"""A state, once released, is kept or removed by the rule: a BREAKING note in the changelog and a migration of its rows.

Clients compare states by name and rows hold them for years. ``RELEASED`` is what they may have seen; a state that is
new is added to it, one that goes is never taken out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from adjudge.domain.states import ChainRunStatus, ContestState, JobStatus, NodeStatus, SubmissionStatus
from adjudge.domain.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
MACHINES: Mapping[str, type[StrEnum]] = {
    "job": JobStatus,
    "submission": SubmissionStatus,
    "run": ChainRunStatus,
    "node": NodeStatus,
    "contest": ContestState,
    "verdict": Verdict,
}
RELEASED: Mapping[str, frozenset[str]] = {
    "job": frozenset(["pending", "queued", "running", "succeeded", "failed", "canceled"]),
    "submission": frozenset(["pending", "judging", "accepted", "wrong_answer", "error", "canceled"]),
    "run": frozenset(["pending", "running", "stopping", "success", "failed", "stopped"]),
    "node": frozenset(["pending", "running", "retrying", "success", "failed", "stopped", "skipped"]),
    "contest": frozenset(["draft", "published", "canceled", "finalized"]),
    "verdict": frozenset({"AC", "PA", "WA", "OLE", "TLE", "MLE", "RE", "CE", "SE"}),
}


def problems(machine: str, had: frozenset[str], has: frozenset[str], changelog: str, migrations: str) -> list[str]:
    """What is missing for the states of one machine to be as they are."""
    found = [f"{machine} '{state}' is new: add it to RELEASED" for state in sorted(has - had)]
    breaking = [line for line in changelog.splitlines() if "BREAKING" in line]
    for state in sorted(had - has):
        if not any(f"`{state}`" in line and machine in line for line in breaking):
            found.append(
                f"{machine} {state!r} is gone: CHANGELOG.md has no line with BREAKING, {machine} and `{state}`"
            )
        if f"'{state}'" not in migrations:
            found.append(f"{machine} {state!r} is gone: no migration gives rows with '{state}' another one")
    return found


def test_states_change_by_the_rule() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = (ROOT / "src" / "adjudge" / "store" / "migrations" / "versions").glob("*.py")
    migrations = "\n".join(path.read_text() for path in versions if "UPDATE" in path.read_text())
    found = [
        line
        for machine, states in MACHINES.items()
        for line in problems(machine, RELEASED[machine], frozenset(states), changelog, migrations)
    ]
    assert not found, "\n".join(found) + "\nSee CONTRIBUTING.md, Changes."


def test_a_removed_state_needs_a_note_and_a_migration() -> None:
    had, has = frozenset({"pending", "queued"}), frozenset({"pending"})
    note = "- BREAKING: the job state `queued` is gone; such jobs are `pending`."
    step = "UPDATE jobs SET status = 'pending' WHERE status = 'queued'"
    assert len(problems("job", had, has, "", "")) == 2
    assert len(problems("job", had, has, note, "")) == 1
    assert len(problems("job", had, has, note.replace("job", "run"), step)) == 1
    assert problems("job", had, has, note, step) == []
    assert problems("job", has, had, "", "") == ["job 'queued' is new: add it to RELEASED"]
