"""Submissions, their verdicts test by test, and rejudging."""

from sqlalchemy import Boolean, CheckConstraint, Column, Double, Index, PrimaryKeyConstraint, Table, false, text

from adjudge.domain.states import SUBMISSION, SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.tables.base import (
    METADATA,
    SERIAL,
    document,
    exactly_when,
    identifier,
    moment,
    number,
    one_of,
    reference,
    words,
)

BATCH_STATES = ("running", "ready", "applied", "discarded", "canceled")
BATCH_POLICIES = ("latest", "best", "first_accepted_stays")

submissions = Table(
    "submissions",
    METADATA,
    identifier(),
    reference("user_id", "users"),
    reference("problem_id", "problems"),
    reference("revision_id", "problem_revisions"),
    reference("contest_id", "contests", nullable=True),
    words("language"),
    words("source_digest"),
    number("source_bytes", None),
    words("status", default=SUBMISSION.initial.value),
    words("prior_status", nullable=True),
    words("verdict", nullable=True),
    Column("score", Double, nullable=True),
    number("time_ms", None, nullable=True),
    number("mem_kb", None, nullable=True),
    words("judged_by_job_id", nullable=True),
    number("version", 1),
    words("actor", nullable=True),
    words("reason", nullable=True),
    moment("created_at"),
    moment("updated_at"),
    moment("finished_at", nullable=True),
    one_of("status", SubmissionStatus),
    one_of("verdict", Verdict),
    exactly_when("finished_at", "status", SUBMISSION.terminal),
    exactly_when("verdict", "status", SUBMISSION.terminal - {SubmissionStatus.CANCELED}),
    Index(None, "user_id", "id"),
    Index(None, "problem_id", "id"),
    Index(None, "contest_id", "id"),
    Index(
        "submissions_open",
        "user_id",
        postgresql_where=text("finished_at IS NULL"),
        sqlite_where=text("finished_at IS NULL"),
    ),
)

case_results = Table(
    "case_results",
    METADATA,
    reference("job_id", "jobs", ondelete="CASCADE"),
    number("attempt_id", None),
    number("ordinal", None),
    words("name"),
    words("group_name", nullable=True),
    words("verdict"),
    Column("score", Double, nullable=True),
    number("time_ms", None),
    number("wall_ms", None),
    number("mem_kb", None),
    number("exit_code", None, nullable=True),
    number("exit_signal", None, nullable=True),
    words("limit_hit", nullable=True),
    words("message", nullable=True),
    PrimaryKeyConstraint("job_id", "ordinal"),
    one_of("verdict", Verdict),
)

rejudge_batches = Table(
    "rejudge_batches",
    METADATA,
    identifier(),
    reference("created_by", "users"),
    document("filter"),
    words("policy", default="latest"),
    words("state", default="running"),
    words("reason", nullable=True),
    number("total"),
    number("version", 1),
    moment("created_at"),
    moment("updated_at"),
    moment("applied_at", nullable=True),
    one_of("state", BATCH_STATES),
    one_of("policy", BATCH_POLICIES),
)

rejudge_items = Table(
    "rejudge_items",
    METADATA,
    reference("batch_id", "rejudge_batches", ondelete="CASCADE"),
    reference("submission_id", "submissions"),
    reference("job_id", "jobs", nullable=True),
    words("old_verdict", nullable=True),
    Column("old_score", Double, nullable=True),
    Column("applied", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("batch_id", "submission_id"),
    Index(None, "job_id"),
)

submission_status_log = Table(
    "submission_status_log",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    reference("submission_id", "submissions", ondelete="CASCADE"),
    words("from_status"),
    words("to_status"),
    words("verdict", nullable=True),
    words("job_id", nullable=True),
    number("version", None),
    words("actor", nullable=True),
    words("reason", nullable=True),
    moment("at"),
    Index(None, "submission_id"),
    CheckConstraint("version > 0", name="version_positive"),
)
