"""The SQL of executions."""

from __future__ import annotations

from adjudge.store.engine.statement import Statement

_COLUMNS = """id, user_id, job_id, language, source, limits, state, verdict, compile_message, created_at, finished_at,
        expires_at"""
RUN_COLUMNS = (
    "ordinal",
    "verdict",
    "time_ms",
    "wall_ms",
    "mem_kb",
    "exit_code",
    "exit_signal",
    "limit_hit",
    "stdout",
    "stderr",
    "is_base64",
    "is_truncated",
)

INSERT = Statement(
    "executions.insert",
    "Create executions.",
    """
    INSERT INTO executions (id, user_id, job_id, language, source, limits, created_at, expires_at, kept_bytes)
    SELECT given_id, given_user_id, given_job_id, given_language, given_source, given_limits, {now},
           {now} + given_life_us, given_kept_bytes
    FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_user_id": "text",
        "given_job_id": "text",
        "given_language": "text",
        "given_source": "text",
        "given_limits": "jsonb",
        "given_life_us": "bigint",
        "given_kept_bytes": "bigint",
    },
)
INSERT_RUNS = Statement(
    "execution_runs.insert",
    "Insert the inputs of executions.",
    """
    INSERT INTO execution_runs (execution_id, ordinal, stdin)
    SELECT given_id, given_ordinal, given_stdin FROM {given}
    """,
    input_columns={"given_id": "text", "given_ordinal": "bigint", "given_stdin": "text"},
)
FIND = Statement("executions.find", "Read one execution.", f"SELECT {_COLUMNS} FROM executions WHERE id = :id")
PAGE = Statement(
    "executions.page",
    "List a user's executions, newest first, keyset-paginated.",
    f"""
    SELECT {_COLUMNS} FROM executions WHERE user_id = :user_id AND id < :before ORDER BY id DESC LIMIT :limit
    """,
)
STDINS = Statement(
    "execution_runs.stdins",
    "Read the inputs of an execution.",
    "SELECT stdin FROM execution_runs WHERE execution_id = :id ORDER BY ordinal",
)
RUNS = Statement(
    "execution_runs.of_execution",
    "Read the results of an execution's inputs.",
    f"SELECT {', '.join(RUN_COLUMNS)} FROM execution_runs WHERE execution_id = :id ORDER BY ordinal",
)
FINISH_RUNS = Statement(
    "execution_runs.finish",
    "Store the results of executions' inputs.",
    """
    UPDATE execution_runs SET verdict = given_verdict, time_ms = given_time_ms, wall_ms = given_wall_ms,
        mem_kb = given_mem_kb, exit_code = given_exit_code, exit_signal = given_exit_signal,
        limit_hit = given_limit_hit, stdout = given_stdout, stderr = given_stderr, is_base64 = given_is_base,
        is_truncated = given_is_truncated
    FROM {given} WHERE execution_id = given_id AND ordinal = given_ordinal
    """,
    input_columns={
        "given_id": "text",
        "given_ordinal": "bigint",
        "given_verdict": "text",
        "given_time_ms": "bigint",
        "given_wall_ms": "bigint",
        "given_mem_kb": "bigint",
        "given_exit_code": "bigint",
        "given_exit_signal": "bigint",
        "given_limit_hit": "text",
        "given_stdout": "text",
        "given_stderr": "text",
        "given_is_base": "boolean",
        "given_is_truncated": "boolean",
    },
)
FINISH = Statement(
    "executions.finish",
    "Finish executions.",
    """
    UPDATE executions SET job_id = given_job_id, state = given_state, verdict = given_verdict,
        compile_message = given_message, finished_at = {now}, kept_bytes = COALESCE(given_kept_bytes, kept_bytes)
    FROM {given} WHERE id = given_id
    """,
    input_columns={
        "given_id": "text",
        "given_job_id": "text",
        "given_state": "text",
        "given_verdict": "text",
        "given_message": "text",
        "given_kept_bytes": "bigint",
    },
)
_LOCK_USER = "SELECT id FROM users WHERE id = :user_id"
LOCK_USER = Statement(
    "executions.lock_user",
    "Lock a user, so that two calls do not both count the same free space.",
    _LOCK_USER + " FOR NO KEY UPDATE",
    sqlite_sql=_LOCK_USER,
)
KEPT_BYTES = Statement(
    "executions.kept_bytes",
    "Sum up how much is kept of a user's executions, and reserved for those under way.",
    "SELECT COALESCE(SUM(kept_bytes), 0) AS kept_bytes FROM executions WHERE user_id = :user_id",
)
DELETE_EXPIRED = Statement(
    "executions.delete_expired",
    "Delete expired executions.",
    """
    DELETE FROM executions WHERE id IN (
        SELECT id FROM executions WHERE expires_at <= {now} AND finished_at IS NOT NULL
        ORDER BY expires_at LIMIT :limit)
    """,
)
