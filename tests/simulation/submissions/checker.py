"""What must hold of submissions after every simulation."""

from __future__ import annotations

from collections.abc import Collection

from adjudge.domain.states import SUBMISSION, SubmissionStatus
from adjudge.store.jobs.commands import LISTENER_FAILED
from tests.simulation.checker import check_jobs
from tests.simulation.scenario import Scenario
from tests.simulation.submissions.oracle import is_poison, oracle


def check(scenario: Scenario, failing: Collection[str]) -> list[str]:
    """Every violation found, in words; ``failing`` are the submissions whose jobs' listener always fails."""
    return [
        *check_jobs(scenario),
        *_results(scenario),
        *_verdicts(scenario, failing),
        *_given_up(scenario),
        *_set_aside(scenario, failing),
    ]


def _results(scenario: Scenario) -> list[str]:
    """What stands was written by the attempt that holds."""
    rows = scenario.world.query(
        "SELECT id, attempt_id, json_extract(result, '$.attempt_id') AS written FROM jobs WHERE status = 'succeeded'"
    )
    return [
        f"job {row['id']}: attempt {row['written']} wrote over attempt {row['attempt_id']}"
        for row in rows
        if row["written"] != row["attempt_id"]
    ]


def _verdicts(scenario: Scenario, failing: Collection[str]) -> list[str]:
    found = []
    for row in scenario.world.query("SELECT id, status, verdict FROM submissions"):
        status = SubmissionStatus(row["status"])
        if row["id"] in failing:
            continue  # its listener was never called for an end
        if status not in SUBMISSION.terminal:
            found.append(f"submission {row['id']} is still {status}")
        elif row["verdict"] == "SE":
            continue  # whether it may be: see what was given up
        elif status is not SubmissionStatus.CANCELED and row["verdict"] != oracle(row["id"]):
            found.append(f"submission {row['id']} got {row['verdict']}, the oracle says {oracle(row['id'])}")
    return found


def _given_up(scenario: Scenario) -> list[str]:
    """What always fails is given up, unless somebody canceled it first, and nothing is before its last attempt."""
    query = scenario.world.query
    return [
        *(
            f"submission {row['id']} cannot be judged, yet is {row['status']}"
            for row in query("SELECT id, status FROM submissions")
            if is_poison(row["id"]) and row["status"] not in ("error", "canceled")
        ),
        *(
            f"submission {row['submission_id']} was given up after {row['attempt_id']} attempts"
            for row in query("SELECT * FROM jobs WHERE status = 'failed' AND attempt_id < max_attempts")
            if row["error_code"] != LISTENER_FAILED
        ),
    ]


def _set_aside(scenario: Scenario, failing: Collection[str]) -> list[str]:
    """The job whose listener always fails ends with an open dead letter that says so; no other job does."""
    rows = scenario.world.query(
        "SELECT jobs.submission_id AS submission_id FROM dead_letters JOIN jobs ON jobs.id = dead_letters.job_id "
        "WHERE dead_letters.error_code = ? AND dead_letters.state = 'open'",
        LISTENER_FAILED,
    )
    found = {row["submission_id"] for row in rows}
    wrong = sorted(found.symmetric_difference(failing))
    return [
        f"submission {key} has no dead letter {LISTENER_FAILED} though its listener fails, or the reverse"
        for key in wrong
    ]
