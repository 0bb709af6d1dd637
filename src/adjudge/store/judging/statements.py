"""SQL statements of submissions and judge runs."""

from __future__ import annotations

from adjudge.store.engine.rows import given_columns
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.models import CaseResultRow, JudgeTask, LockedSubmission, SubmissionNumber

_INSERTED = """id, user_id, problem_id, revision_id, contest_id, language, source_digest, source_format,
                             source_bytes, actor, created_at, updated_at"""
_VALUES = """given_id, given_user_id, given_problem_id, given_revision_id, given_contest_id, given_language,
           given_source_digest, given_source_format, given_source_bytes, given_user_id, {now}, {now}"""
INSERT = Statement(
    "submissions.insert",
    "Create submissions, numbered in the order of their ids.",
    f"""
    INSERT INTO submissions ({_INSERTED})
    SELECT {_VALUES}
    FROM {{given}} ORDER BY given_id
    RETURNING {{columns}}
    """,
    sqlite_sql=f"""
    INSERT INTO submissions (number, {_INSERTED})
    SELECT (SELECT COALESCE(max(number), 0) FROM submissions) + row_number() OVER (ORDER BY given_id), {_VALUES}
    FROM {{given}}
    RETURNING {{columns}}
    """,
    row=SubmissionNumber,
    input_columns={
        "given_id": "text",
        "given_user_id": "text",
        "given_problem_id": "text",
        "given_revision_id": "text",
        "given_contest_id": "text",
        "given_language": "text",
        "given_source_digest": "text",
        "given_source_format": "text",
        "given_source_bytes": "bigint",
    },
)

LOCK = Statement(
    "submissions.lock",
    "Lock submissions and read their status and version.",
    """
    SELECT {columns:submissions} FROM {given} JOIN submissions ON submissions.id = given_id
    ORDER BY submissions.id FOR UPDATE OF submissions
    """,
    input_columns={"given_id": "text"},
    row=LockedSubmission,
    columns={"job_id": "judged_by_job_id"},
)

UPDATE = Statement(
    "submissions.update",
    "Update submissions if their version is unchanged.",
    """
    UPDATE submissions SET prior_status = status, status = given_status, version = version + 1,
        verdict = given_verdict, score = given_score, time_ms = given_time_ms, mem_kb = given_mem_kb,
        judged_by_job_id = given_job_id, actor = given_actor, reason = given_reason, updated_at = {now},
        finished_at = CASE WHEN given_ends = 1 THEN {now} END
    FROM {given}
    WHERE id = given_id AND version = given_version
    RETURNING id, prior_status, status, version, contest_id
    """,
    input_columns={
        "given_id": "text",
        "given_version": "bigint",
        "given_status": "text",
        "given_verdict": "text",
        "given_score": "double precision",
        "given_time_ms": "bigint",
        "given_mem_kb": "bigint",
        "given_job_id": "text",
        "given_actor": "text",
        "given_reason": "text",
        "given_ends": "bigint",
    },
)

SELECT_TASK = Statement(
    "submissions.select_task",
    "Read what the judge needs to know of a submission.",
    """
    SELECT {columns} FROM submissions
    JOIN problem_revisions ON problem_revisions.id = COALESCE(CAST(:revision_id AS text), submissions.revision_id)
    LEFT JOIN source_texts ON digest = source_digest
    WHERE submissions.id = :submission_id
    """,
    row=JudgeTask,
    columns={"submission_id": "submissions.id", "revision_id": "problem_revisions.id", "source_text": "body"},
)

LOCK_OPEN_RUNS = Statement(
    "submissions.lock_open_runs",
    "Lock the unfinished judge runs of a submission. Lock order: jobs before submissions.",
    """
    SELECT id FROM jobs
    WHERE submission_id = :submission_id AND kind = 'judge' AND rejudge_batch_id IS NULL
      AND status IN ('pending', 'queued', 'running')
    ORDER BY id
    FOR UPDATE
    """,
)

INSERT_CASES = Statement(
    "case_results.insert",
    "Insert the test case results of a judge run.",
    """
    INSERT INTO case_results (job_id, attempt_id, ordinal, name, group_name, verdict, score, time_ms, wall_ms, mem_kb,
                              exit_code, exit_signal, limit_hit, message)
    SELECT given_job_id, given_attempt_id, given_ordinal, given_name, given_group, given_verdict, given_score,
           given_time_ms, given_wall_ms, given_mem_kb, given_exit_code, given_exit_signal, given_limit_hit,
           given_message
    FROM {given}
    """,
    input_columns={
        "given_job_id": "text",
        "given_attempt_id": "bigint",
        "given_ordinal": "bigint",
        **given_columns(CaseResultRow),
    },
)

INSERT_SOURCES = Statement(
    "source_texts.insert",
    "Insert small sources, skipping those that exist.",
    """
    INSERT INTO source_texts (digest, body, created_at)
    SELECT given_digest, given_body, {now} FROM {given} WHERE true
    ON CONFLICT (digest) DO NOTHING
    """,
    input_columns={"given_digest": "text", "given_body": "text"},
)

SELECT_SOURCE = Statement(
    "source_texts.select",
    "Read a small source.",
    "SELECT body FROM source_texts WHERE digest = :digest",
)
