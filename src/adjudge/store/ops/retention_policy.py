"""What happens to the rows of each table in the course of time: swept, deleted with others, or kept, and why.

``docs/reference/retention.md`` is generated from this. A table that is missing here fails a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Swept:
    """Rows are deleted by the scheduler when their time to live is over."""

    after: str
    setting: str | None = None
    """The setting of the time to live, if it can be changed."""
    by: str = "retention"
    """The component that deletes them."""


@dataclass(frozen=True, slots=True)
class DeletedWith:
    """Rows are deleted with the row of ``table`` that they belong to."""

    table: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows are kept until somebody deletes or replaces them."""

    reason: str


Policy = Swept | DeletedWith | Kept

_MANUAL: Final = Kept("one row for each object that a person created; it grows with the installation, not with time")
_CONTEST: Final = Kept("part of a contest; results are kept for good")
_SUBMISSION: Final = Kept("the record of a submission, which its author, juries and statistics refer to")
_BOUNDED: Final = Kept("at most one row for each object that it describes")

POLICY: Final[Mapping[str, Policy]] = MappingProxyType(
    {
        # Jobs
        "jobs": Swept(
            "one day after it ended, once its execution, evaluation, callback or delivery is gone; jobs of chain runs "
            "and imports are deleted with these, judge runs are kept with their submission"
        ),
        "job_attempts": Swept(
            "90 days after the job ended, unless it has an open dead letter", "retention.history_days"
        ),
        "job_status_log": Swept(
            "90 days after the job ended, unless it has an open dead letter", "retention.history_days"
        ),
        "outbox": Swept("one day after the job ended"),
        "job_progress": Swept("10 minutes after the last progress"),
        "dead_letters": Swept(
            "365 days after it was replayed or discarded; open ones are kept", "retention.dead_letters_days"
        ),
        # Judging
        "submissions": _SUBMISSION,
        "submission_status_log": _SUBMISSION,
        "source_texts": Kept("sources of submissions, each stored once"),
        "case_results": DeletedWith("jobs"),
        "rejudge_batches": _SUBMISSION,
        "rejudge_items": _SUBMISSION,
        "executions": Swept("one day after it was created, if it has ended", "executions.keep_sec"),
        "execution_runs": DeletedWith("executions"),
        "evaluations": Swept("one day after its last records were added", "executions.keep_sec"),
        "evaluation_items": DeletedWith("evaluations"),
        # Problems
        "problems": _MANUAL,
        "problem_revisions": Kept("submissions refer to the revision that they were judged with"),
        "manifest_files": DeletedWith("problem_revisions"),
        "problem_tags": _BOUNDED,
        "problem_words": _BOUNDED,
        "problem_imports": Swept(
            "90 days after it ended; the last one and the last verification of a revision are kept",
            "retention.imports_days",
        ),
        # Chains
        "chains": _MANUAL,
        "chain_versions": Kept("one row for each saved version of a chain; runs refer to it"),
        "chain_runs": Swept("90 days after it ended", "chains.keep_days", by="chain housekeeping"),
        "chain_nodes": DeletedWith("chain_runs"),
        "chain_checkpoints": DeletedWith("chain_runs"),
        "chain_node_logs": DeletedWith("chain_runs"),
        "chain_status_log": DeletedWith("chain_runs"),
        "chain_triggers": _MANUAL,
        "chain_trigger_ticks": Swept("90 days after it started a run or failed"),
        "chain_secrets": _MANUAL,
        # Webhooks
        "webhooks": _MANUAL,
        "webhook_deliveries": Swept("30 days after it was created", "webhooks.keep_sec"),
        # Accounts
        "users": _MANUAL,
        "identities": DeletedWith("users"),
        "sessions": Swept("7 days after it expired"),
        "api_tokens": Swept("90 days after it expired or was revoked", "retention.tokens_days"),
        "password_resets": Swept("30 days after it expired"),
        "invitations": _MANUAL,
        # Operations
        "audit_log": Swept("1095 days after the action", "retention.audit_days"),
        "idempotency_keys": Swept("one day after the request"),
        "metric_samples": Swept("one day after it was taken"),
        "processes": Swept("when its lease has expired and a process registers", by="registration of processes"),
        "system_metrics": _BOUNDED,
        "mails": Swept("30 days after it was created; the text is deleted when the mail is sent", "mail.keep_sec"),
        "operational_events": Swept("30 days after it was recorded", "mail.keep_sec"),
        "judging_pauses": Kept("deleted when judging goes on"),
        "worker_controls": Kept("deleted when the order to the worker is withdrawn"),
        "installation": _BOUNDED,
        "cache_revisions": _BOUNDED,
        # Contests
        "contests": _MANUAL,
        "awards": _CONTEST,
        "balloons": _CONTEST,
        "canned_answers": _CONTEST,
        "clarifications": _CONTEST,
        "clarification_groups": _CONTEST,
        "contest_accounts": _CONTEST,
        "contest_counters": _CONTEST,
        "contest_event_log": _CONTEST,
        "contest_feeds": _CONTEST,
        "contest_feed_events": DeletedWith("contest_feeds"),
        "contest_groups": _CONTEST,
        "contest_group_members": _CONTEST,
        "contest_invitations": _CONTEST,
        "contest_log": _CONTEST,
        "contest_materials": _CONTEST,
        "contest_problems": _CONTEST,
        "contest_read_marks": _BOUNDED,
        "contest_roles": _CONTEST,
        "contest_state_log": _CONTEST,
        "contest_submissions": _CONTEST,
        "organizations": _MANUAL,
        "participants": _CONTEST,
        "participant_members": _CONTEST,
        "prints": _CONTEST,
        "ratings": _CONTEST,
        "removed_intervals": _CONTEST,
        "scoreboard_cells": _CONTEST,
        "scoreboard_log": Swept("one day after the change; readers that were away longer read a snapshot"),
        "scoreboard_rows": _CONTEST,
        "team_members": _MANUAL,
        "teams": _MANUAL,
    }
)
"""Table → what happens to its rows."""
