"""SQL statements of rejudge batches."""

from __future__ import annotations

from adjudge.store.contests.hidden import shown
from adjudge.store.engine.statement import Statement
from adjudge.store.judging.models import RejudgeBatchRow, RejudgeItemRow, SelectedSubmission, VerdictChangeCount

_COLUMNS = {
    "job_id": "judged_by_job_id",
    "pinned_revision_id": "submissions.revision_id",
    "current_revision_id": "problems.published_revision_id",
    "timeout_ms": "jobs.timeout_ms",
}
_JOINED = """JOIN problems ON problems.id = submissions.problem_id
        LEFT JOIN jobs ON jobs.id = judged_by_job_id"""
_MATCH = """verdict IS NOT NULL
        AND (CAST(:problem_id AS text) IS NULL OR submissions.problem_id = :problem_id)
        AND (CAST(:contest_id AS text) IS NULL OR contest_id = :contest_id)
        AND (CAST(:user_id AS text) IS NULL OR submissions.user_id = :user_id)
        AND (CAST(:language AS text) IS NULL OR language = :language)
        AND (CAST(:verdict AS text) IS NULL OR verdict = :verdict)
        AND (CAST(:since_us AS bigint) IS NULL OR submissions.created_at >= :since_us)
        AND (CAST(:until_us AS bigint) IS NULL OR submissions.created_at < :until_us)"""

SELECT_BY_FILTER = Statement(
    "rejudge.select_by_filter",
    "Select judged submissions by filter.",
    f"SELECT {{columns:submissions}} FROM submissions {_JOINED} WHERE {_MATCH} ORDER BY submissions.id LIMIT :limit",
    row=SelectedSubmission,
    columns=_COLUMNS,
    force_custom_plan=True,
)
SELECT_BY_IDS = Statement(
    "rejudge.select_by_ids",
    "Select judged submissions by id and filter.",
    f"""
    SELECT {{columns:submissions}} FROM {{given}} JOIN submissions ON submissions.id = given_id {_JOINED}
    WHERE {_MATCH} ORDER BY submissions.id
    """,
    input_columns={"given_id": "text"},
    row=SelectedSubmission,
    columns=_COLUMNS,
)
INSERT_BATCH = Statement(
    "rejudge.insert_batch",
    "Create a rejudge batch.",
    """
    INSERT INTO rejudge_batches (id, created_by, filter, policy, revision, reason, total, created_at, updated_at)
    VALUES (:id, :created_by, :filter, :policy, :revision, :reason, :total, {now}, {now})
    """,
    sqlite_sql="""
    INSERT INTO rejudge_batches (id, number, created_by, filter, policy, revision, reason, total, created_at,
                                 updated_at)
    VALUES (:id, (SELECT COALESCE(max(number), 0) + 1 FROM rejudge_batches), :created_by, :filter, :policy, :revision,
            :reason, :total, {now}, {now})
    """,
)
INSERT_ITEMS = Statement(
    "rejudge.insert_items",
    "Insert the items of a batch with the current verdicts and the new judge runs.",
    """
    INSERT INTO rejudge_items (batch_id, submission_id, job_id, revision_id, old_version, old_verdict, old_score,
                               old_time_ms, old_mem_kb, old_job_id)
    SELECT :batch_id, given_id, given_job_id, given_revision_id, given_version, given_verdict, given_score,
           given_time_ms, given_mem_kb, given_old_job_id
    FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_job_id": "text",
        "given_revision_id": "text",
        "given_version": "bigint",
        "given_verdict": "text",
        "given_score": "double precision",
        "given_time_ms": "bigint",
        "given_mem_kb": "bigint",
        "given_old_job_id": "text",
    },
)

_RESULT_COLUMNS = {
    "given_batch_id": "text",
    "given_id": "text",
    "given_job_id": "text",
    "given_outcome": "text",
    "given_verdict": "text",
    "given_score": "double precision",
    "given_time_ms": "bigint",
    "given_mem_kb": "bigint",
}
_SET_RESULT = """UPDATE rejudge_items SET outcome = given_outcome, job_id = given_job_id, new_verdict = given_verdict,
        new_score = given_score, new_time_ms = given_time_ms, new_mem_kb = given_mem_kb
    FROM {given} WHERE batch_id = given_batch_id AND submission_id = given_id"""
FINISH_ITEMS = Statement(
    "rejudge.finish_items",
    "Store the results of a batch's judge runs.",
    f"{_SET_RESULT} AND outcome IS NULL RETURNING batch_id, submission_id",
    input_columns=_RESULT_COLUMNS,
)
FINISH_REPLAYED_ITEMS = Statement(
    "rejudge.finish_replayed_items",
    "Store the results of replayed judge runs while the batch is undecided.",
    f"""
    {_SET_RESULT} AND outcome = 'failed' AND batch_id IN (
        SELECT id FROM rejudge_batches WHERE id = given_batch_id AND state IN ('running', 'ready'))
    """,
    input_columns=_RESULT_COLUMNS,
)
COUNT_FINISHED = Statement(
    "rejudge.count_finished",
    "Count finished judge runs of batches; the last one makes the batch ready.",
    """
    UPDATE rejudge_batches SET ended = ended + given_n, version = version + 1, updated_at = {now},
        state = CASE WHEN state = 'running' AND ended + given_n >= total THEN 'ready' ELSE state END
    FROM {given} WHERE id = given_id
    """,
    input_columns={"given_id": "text", "given_n": "bigint"},
)

_BATCH = "SELECT {columns} FROM rejudge_batches WHERE id = :id"
FIND = Statement("rejudge.find", "Read one rejudge batch.", _BATCH, row=RejudgeBatchRow)
FIND_MANY = Statement(
    "rejudge.find_many",
    "Read several rejudge batches.",
    "SELECT {columns:rejudge_batches} FROM {given} JOIN rejudge_batches ON rejudge_batches.id = given_id",
    input_columns={"given_id": "text"},
    row=RejudgeBatchRow,
)
FIND_ID = Statement(
    "rejudge.find_id",
    "Read the id of the rejudge batch with a number.",
    "SELECT id FROM rejudge_batches WHERE number = :number",
)
LOCK_BATCH = Statement(
    "rejudge.lock_batch",
    "Lock a rejudge batch.",
    _BATCH + " FOR UPDATE",
    row=RejudgeBatchRow,
)
PAGE = Statement(
    "rejudge.page",
    "List rejudge batches without those of hidden contests, newest first, keyset-paginated.",
    f"""
    SELECT {{columns}} FROM rejudge_batches WHERE id < :before AND (CAST(:hidden_contests AS text) = '' OR NOT EXISTS (
        SELECT 1 FROM rejudge_items JOIN submissions ON submissions.id = submission_id
        WHERE batch_id = rejudge_batches.id AND NOT {shown("contest_id")}))
    ORDER BY id DESC LIMIT :limit
    """,
    row=RejudgeBatchRow,
)
ITEMS = Statement(
    "rejudge.items",
    "List the items of a batch with old and new verdicts.",
    f"""
    SELECT {{columns}} FROM rejudge_items JOIN submissions ON submissions.id = submission_id
    WHERE batch_id = :batch_id AND submission_id > :after AND {shown("submissions.contest_id")}
      AND (CAST(:only_different AS bigint) = 0
           OR (outcome IS NOT NULL AND (COALESCE(old_verdict, '') <> COALESCE(new_verdict, '')
               OR COALESCE(old_score, 0) <> COALESCE(new_score, 0))))
    ORDER BY submission_id LIMIT :limit
    """,
    row=RejudgeItemRow,
    columns={
        "submission_number": "submissions.number",
        "has_changed": "CASE WHEN applied OR submissions.version = old_version THEN 0 ELSE 1 END",
    },
)
COUNT_VERDICT_CHANGES = Statement(
    "rejudge.count_verdict_changes",
    "Count the items of a batch by old and new verdict.",
    f"""
    SELECT {{columns}} FROM rejudge_items JOIN submissions ON submissions.id = submission_id
    WHERE batch_id = :batch_id AND {shown("submissions.contest_id")}
    GROUP BY old_verdict, new_verdict, outcome ORDER BY count(*) DESC, old_verdict, new_verdict
    """,
    row=VerdictChangeCount,
    columns={"count": "count(*)"},
)
LOCK_SUBMISSIONS = Statement(
    "rejudge.lock_submissions",
    "Lock the submissions of a batch and read their versions.",
    """
    SELECT submissions.id AS id, submissions.version AS version, old_version
    FROM rejudge_items JOIN submissions ON submissions.id = submission_id
    WHERE batch_id = :batch_id ORDER BY submissions.id
    FOR UPDATE OF submissions
    """,
)
IS_APPLIED = """outcome = 'judged'
      AND submissions.version = old_version
      AND CASE CAST(:policy AS text)
          WHEN 'best' THEN (CASE WHEN new_verdict = 'AC' THEN 1 ELSE 0 END, COALESCE(new_score, 0))
                           > (CASE WHEN submissions.verdict = 'AC' THEN 1 ELSE 0 END, COALESCE(submissions.score, 0))
          WHEN 'first_accepted_stays' THEN submissions.verdict <> 'AC'
          ELSE true END"""
"""The items that a batch changes when it is applied by ``:policy``."""

APPLY = Statement(
    "rejudge.apply",
    "Write the new verdicts to submissions by the batch's policy; concurrently changed ones are skipped.",
    f"""
    UPDATE submissions SET prior_status = status,
        status = CASE new_verdict WHEN 'AC' THEN 'accepted' WHEN 'WA' THEN 'wrong_answer' WHEN 'PA' THEN 'wrong_answer'
                 ELSE 'error' END,
        verdict = new_verdict, score = new_score, time_ms = new_time_ms, mem_kb = new_mem_kb,
        judged_by_job_id = rejudge_items.job_id,
        revision_id = COALESCE(rejudge_items.revision_id, submissions.revision_id),
        version = submissions.version + 1, actor = :actor, reason = :reason, updated_at = {{now}}
    FROM rejudge_items
    WHERE batch_id = :batch_id AND submission_id = submissions.id AND {IS_APPLIED}
    RETURNING submissions.id AS id, prior_status, status, contest_id
    """,
)
MARK_APPLIED = Statement(
    "rejudge.mark_applied",
    "Mark the items that a batch changed.",
    "UPDATE rejudge_items SET applied = true FROM {given} WHERE batch_id = :batch_id AND submission_id = given_id",
    input_columns={"given_id": "text"},
)
SET_STATE = Statement(
    "rejudge.set_state",
    "Set the state of a batch.",
    """
    UPDATE rejudge_batches SET state = :state, version = version + 1, updated_at = {now},
        applied_at = CASE WHEN CAST(:is_applied AS bigint) = 1 THEN {now} END
    WHERE id = :id
    """,
)
LOCK_OPEN_RUNS = Statement(
    "rejudge.lock_open_runs",
    "Lock the unfinished judge runs of a batch.",
    """
    SELECT id FROM jobs WHERE rejudge_batch_id = :batch_id AND status IN ('pending', 'queued', 'running') ORDER BY id
    FOR UPDATE
    """,
)

LOCK_BATCH_STATE = Statement(
    "rejudge.lock_batch_state",
    "Read a rejudge batch's state under a share lock.",
    "SELECT state FROM rejudge_batches WHERE id = :batch_id FOR SHARE",
)
