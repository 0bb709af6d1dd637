"""The Contest API. What of a contest a viewer sees is decided by the service, from the visibility table."""

from tests.unit.api.access_tables import ALL, USERS

_ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", ""): "open",
    ("GET", "/"): "open",
    ("GET", "/contests"): ALL,
    ("GET", "/contests/{contest}"): ALL,
    ("GET", "/contests/{contest}/access"): ALL,
    ("GET", "/contests/{contest}/account"): ALL,
    ("GET", "/contests/{contest}/state"): ALL,
    ("GET", "/contests/{contest}/scoreboard"): ALL,
    ("PATCH", "/contests/{contest}"): USERS,
    ("POST", "/contests/{contest}/submissions"): USERS,
    ("PUT", "/contests/{contest}/submissions/{object_id}"): USERS,
    ("POST", "/contests/{contest}/clarifications"): USERS,
    ("PUT", "/contests/{contest}/clarifications/{object_id}"): USERS,
    ("GET", "/contests/{contest}/submissions/{object_id}/files"): ALL,
    ("GET", "/contests/{contest}/teams/{object_id}/photo"): ALL,
    ("GET", "/contests/{contest}/organizations/{object_id}/logo"): ALL,
    ("GET", "/contests/{contest}/problems/{label}/statement"): ALL,
    ("GET", "/contests/{contest}/problems/{label}/attachments/{name:path}"): ALL,
    ("GET", "/contests/{contest}/event-feed"): ALL,
    ("GET", "/contests/{contest}/{collection}"): ALL,
    ("GET", "/contests/{contest}/{collection}/{object_id}"): ALL,
}
PREFIXES = ("/api/2023-06", "/api/2026-01", "/api/v4", "/api")

ROUTES: dict[tuple[str, str], set[str] | str] = {
    (method, f"{prefix}{path}"): roles for prefix in PREFIXES for (method, path), roles in _ROUTES.items()
}
