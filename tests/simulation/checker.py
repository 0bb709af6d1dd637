"""What must hold of jobs of any kind after every simulation, read from the rows and the logs alone."""

from __future__ import annotations

from collections import defaultdict

from adjudge.domain.states import JOB, JobStatus
from tests.simulation.scenario import Scenario


def check_jobs(scenario: Scenario) -> list[str]:
    """Every violation found, in words."""
    return [
        *scenario.world.violations,
        *_rest(scenario),
        *_histories(scenario),
        *_attempts(scenario),
        *_dead_letters(scenario),
    ]


def job_trace(scenario: Scenario) -> list[str]:
    """What became of jobs, line by line."""
    rows = scenario.world.query(
        "SELECT job_id, from_status, to_status, attempt_id, actor, reason, at FROM job_status_log ORDER BY id"
    )
    return [repr(tuple(row)) for row in rows]


def _rest(scenario: Scenario) -> list[str]:
    if scenario.is_idle():
        return []
    world = scenario.world
    open_jobs = world.query("SELECT id, status, attempt_id, reason FROM jobs WHERE finished_at IS NULL")
    unsent = world.query("SELECT job_id, attempts, last_error FROM outbox WHERE state = 'pending'")
    return [f"it never came to rest: jobs {[tuple(row) for row in open_jobs]}, outbox {[tuple(row) for row in unsent]}"]


def _histories(scenario: Scenario) -> list[str]:
    """Each log is a path through the state machine that ends where the row stands, with one end."""
    found = []
    paths = defaultdict(list)
    for row in scenario.world.query("SELECT * FROM job_status_log ORDER BY id"):
        paths[row["job_id"]].append(row)
    for job in scenario.world.query("SELECT id, status, attempt_id FROM jobs"):
        at, attempt = JOB.initial, 0
        for step in paths[job["id"]]:
            source, target = JobStatus(step["from_status"]), JobStatus(step["to_status"])
            if source is not at or not JOB.allows(source, target):
                found.append(f"job {job['id']} jumped from {at} to {target}")
            if target is JobStatus.RUNNING and step["attempt_id"] <= attempt:
                found.append(f"job {job['id']} ran attempt {step['attempt_id']} after {attempt}")
            at, attempt = target, step["attempt_id"]
        if at != job["status"]:
            found.append(f"job {job['id']} is {job['status']}, but its log ends at {at}")
        ends = sum(JobStatus(step["to_status"]) in JOB.terminal for step in paths[job["id"]])
        if ends > 1:
            found.append(f"job {job['id']} ended {ends} times")
    return found


def _attempts(scenario: Scenario) -> list[str]:
    """Attempts are bounded, and only an expired lease is taken over."""
    query = scenario.world.query
    return [
        *(
            f"job {row['id']} had {row['attempt_id']} attempts"
            for row in query("SELECT id, attempt_id FROM jobs WHERE attempt_id > max_attempts")
        ),
        *(
            f"job {row['job_id']} was taken from {row['lease_owner']} while it held the lease"
            for row in query("SELECT * FROM job_attempts WHERE outcome = 'reclaimed' AND reason <> 'reclaimed'")
        ),
    ]


def _dead_letters(scenario: Scenario) -> list[str]:
    """Buried is what failed."""
    query = scenario.world.query
    failed = {row["id"] for row in query("SELECT id FROM jobs WHERE status = 'failed'")}
    dead_lettered = {row["job_id"] for row in query("SELECT job_id FROM dead_letters")}
    return [f"job {job_id} failed without a dead letter, or the reverse" for job_id in sorted(failed ^ dead_lettered)]
