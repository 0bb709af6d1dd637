"""Who may rejudge, run programs, and use webhooks."""

EVERYBODY = {"admin", "setter", "judge", "contestant", "service"}
STAFF = {"admin", "judge"}

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("POST", "/api/v1/rejudge-batches"): STAFF,
    ("GET", "/api/v1/rejudge-batches"): STAFF | {"setter"},
    ("GET", "/api/v1/rejudge-batches/{batch_id}"): STAFF | {"setter"},
    ("GET", "/api/v1/rejudge-batches/{batch_id}/preview"): STAFF | {"setter"},
    ("GET", "/api/v1/rejudge-batches/{batch_id}/scoreboards"): STAFF | {"setter"},
    ("POST", "/api/v1/rejudge-batches/{batch_id}:apply"): STAFF,
    ("POST", "/api/v1/rejudge-batches/{batch_id}:discard"): STAFF,
    ("POST", "/api/v1/rejudge-batches/{batch_id}:cancel"): STAFF,
    ("POST", "/api/v1/executions"): EVERYBODY,
    ("POST", "/api/v1/executions:batch"): EVERYBODY,
    ("GET", "/api/v1/executions"): EVERYBODY,
    ("GET", "/api/v1/executions/{execution_id}"): EVERYBODY,
    ("POST", "/api/v1/executions/{execution_id}:cancel"): EVERYBODY,
    ("POST", "/api/v1/webhooks"): EVERYBODY,
    ("GET", "/api/v1/webhooks"): EVERYBODY,
    ("GET", "/api/v1/webhooks/{webhook_id}"): EVERYBODY,
    ("PATCH", "/api/v1/webhooks/{webhook_id}"): EVERYBODY,
    ("DELETE", "/api/v1/webhooks/{webhook_id}"): EVERYBODY,
    ("POST", "/api/v1/webhooks/{webhook_id}:ping"): EVERYBODY,
    ("GET", "/api/v1/webhooks/{webhook_id}/deliveries"): EVERYBODY,
    ("POST", "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}:repeat"): EVERYBODY,
    ("POST", "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}:redeliver"): EVERYBODY,
}
