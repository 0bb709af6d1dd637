"""SQL statements of webhooks and their deliveries."""

from __future__ import annotations

from adjudge.store.engine.statement import Statement
from adjudge.store.webhooks.models import (
    ContestSubscription,
    DeliveryRequest,
    Subscription,
    WebhookDeliveryRow,
    WebhookRow,
)

INSERT = Statement(
    "webhooks.insert",
    "Insert a webhook.",
    """
    INSERT INTO webhooks (id, user_id, url, secret, events, created_at, updated_at)
    VALUES (:id, :user_id, :url, :secret, :events, {now}, {now})
    """,
)
OF_USER = Statement(
    "webhooks.of_user",
    "List a user's webhooks.",
    "SELECT {columns} FROM webhooks WHERE user_id = :user_id ORDER BY id",
    row=WebhookRow,
)
FIND = Statement(
    "webhooks.find",
    "Read one of a user's webhooks.",
    "SELECT {columns} FROM webhooks WHERE id = :id AND user_id = :user_id",
    row=WebhookRow,
)
UPDATE = Statement(
    "webhooks.update",
    "Update one of a user's webhooks; enabling it resets its failure count.",
    """
    UPDATE webhooks SET url = :url, events = :events, is_active = :is_active, updated_at = {now},
        failures = CASE WHEN :reset_failures THEN 0 ELSE failures END,
        disabled_at = CASE WHEN :reset_failures THEN NULL ELSE disabled_at END,
        disabled_reason = CASE WHEN :reset_failures THEN NULL ELSE disabled_reason END
    WHERE id = :id AND user_id = :user_id
    """,
)
DELETE = Statement(
    "webhooks.delete",
    "Delete one of a user's webhooks.",
    "DELETE FROM webhooks WHERE id = :id AND user_id = :user_id",
)
SELECT_SUBSCRIBERS = Statement(
    "webhooks.select_subscribers",
    "Find the webhooks subscribed to given submissions, with their state.",
    """
    SELECT {columns}
    FROM {given} JOIN submissions ON submissions.id = given_id JOIN webhooks ON webhooks.user_id = submissions.user_id
    WHERE is_active AND NOT EXISTS (
        SELECT 1 FROM contests WHERE contests.id = submissions.contest_id AND (feedback <> 'full' OR verify_required))
    """,
    input_columns={"given_id": "text"},
    row=Subscription,
    columns={"webhook_id": "webhooks.id", "submission_id": "submissions.id"},
)
SELECT_CONTEST_SUBSCRIBERS = Statement(
    "webhooks.select_contest_subscribers",
    "Find the active webhooks of everybody who takes part in a contest, the last run of each user first.",
    """
    SELECT {columns} FROM participant_members JOIN webhooks ON webhooks.user_id = participant_members.user_id
    WHERE participant_members.contest_id = :contest_id AND is_active
    ORDER BY webhooks.id, participant_members.run_no DESC
    """,
    row=ContestSubscription,
    columns={"webhook_id": "webhooks.id", "user_id": "webhooks.user_id"},
)
SELECT_OPERATOR_WEBHOOKS = Statement(
    "webhooks.select_of_operators",
    "Find the active webhooks of enabled users with given roles.",
    """
    SELECT {columns} FROM {given} JOIN users ON users.role = given_role JOIN webhooks ON webhooks.user_id = users.id
    WHERE is_active AND users.disabled_at IS NULL ORDER BY webhooks.id
    """,
    input_columns={"given_role": "text"},
    row=WebhookRow,
    columns={
        "id": "webhooks.id",
        "created_at": "webhooks.created_at",
        "updated_at": "webhooks.updated_at",
        "disabled_at": "webhooks.disabled_at",
    },
)
INSERT_DELIVERIES = Statement(
    "webhook_deliveries.insert",
    "Insert webhook deliveries.",
    """
    INSERT INTO webhook_deliveries (id, job_id, webhook_id, event, body, created_at)
    SELECT given_id, given_job_id, given_webhook_id, given_event, given_body, {now} FROM {given}
    """,
    input_columns={
        "given_id": "text",
        "given_job_id": "text",
        "given_webhook_id": "text",
        "given_event": "text",
        "given_body": "text",
    },
)
SELECT_REQUEST = Statement(
    "webhook_deliveries.select_request",
    "Read the URL, secret and body of a delivery.",
    """
    SELECT {columns} FROM webhook_deliveries JOIN webhooks ON webhooks.id = webhook_id
    WHERE webhook_deliveries.id = :id
    """,
    row=DeliveryRequest,
    columns={"delivery_id": "webhook_deliveries.id"},
)
FINISH = Statement(
    "webhook_deliveries.finish",
    "Store the results of deliveries.",
    """
    UPDATE webhook_deliveries SET job_id = given_job_id, state = given_state, response_status = given_status,
        error = given_error, finished_at = {now}
    FROM {given} WHERE id = given_id
    """,
    input_columns={
        "given_id": "text",
        "given_job_id": "text",
        "given_state": "text",
        "given_status": "bigint",
        "given_error": "text",
    },
)
UPDATE_FAILURES = Statement(
    "webhooks.update_failures",
    "Update consecutive failures and disable a webhook past the limit; failed pings do not count.",
    """
    UPDATE webhooks SET
        failures = CASE WHEN delivered > 0 THEN 0 ELSE failures + failed END,
        disabled_at = CASE WHEN is_active AND delivered = 0 AND failures + failed >= :limit THEN {now}
                      ELSE disabled_at END,
        disabled_reason = CASE WHEN is_active AND delivered = 0 AND failures + failed >= :limit THEN last_error
                          ELSE disabled_reason END,
        is_active = CASE WHEN delivered = 0 AND failures + failed >= :limit THEN FALSE ELSE is_active END
    FROM (
        SELECT webhook_id, max(given_error) AS last_error,
               CAST(sum(CASE WHEN given_error IS NULL THEN 1 ELSE 0 END) AS bigint) AS delivered,
               CAST(sum(CASE WHEN given_error IS NULL OR event = 'ping' THEN 0 ELSE 1 END) AS bigint) AS failed
        FROM {given} JOIN webhook_deliveries ON webhook_deliveries.id = given_id GROUP BY webhook_id
    ) AS results
    WHERE webhooks.id = results.webhook_id AND (failed > 0 OR (delivered > 0 AND failures > 0))
    """,
    input_columns={"given_id": "text", "given_error": "text"},
)
REDELIVER = Statement(
    "webhook_deliveries.redeliver",
    "Set a finished delivery to pending with a new job.",
    """
    UPDATE webhook_deliveries SET job_id = :job_id, state = 'pending', response_status = NULL, error = NULL,
        finished_at = NULL
    WHERE id = :id AND webhook_id = :webhook_id AND state <> 'pending'
    """,
)
DELIVERY_STATE = Statement(
    "webhook_deliveries.state",
    "Read the state of one delivery.",
    "SELECT state FROM webhook_deliveries WHERE id = :id AND webhook_id = :webhook_id",
)
PAGE_DELIVERIES = Statement(
    "webhook_deliveries.page",
    "List the deliveries of a webhook, newest first, keyset-paginated.",
    """
    SELECT {columns:webhook_deliveries} FROM webhook_deliveries JOIN jobs ON jobs.id = job_id
    WHERE webhook_id = :webhook_id AND webhook_deliveries.id < :before
    ORDER BY webhook_deliveries.id DESC LIMIT :limit
    """,
    row=WebhookDeliveryRow,
    columns={
        "attempts": "jobs.attempt_id",
        "error": "COALESCE(webhook_deliveries.error, jobs.error)",
        "next_attempt_at": "CASE WHEN jobs.status = 'pending' THEN jobs.available_at END",
    },
)
DELETE_OLD = Statement(
    "webhook_deliveries.delete_old",
    "Delete deliveries finished before the retention period.",
    """
    DELETE FROM webhook_deliveries WHERE id IN (
        SELECT id FROM webhook_deliveries WHERE created_at < {now} - :older_than_us AND finished_at IS NOT NULL
        ORDER BY created_at LIMIT :limit)
    """,
)
