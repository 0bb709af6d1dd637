"""The Contest API. What of a contest a viewer sees is decided by the service, from the visibility table."""

from tests.unit.api.access_tables import ALL

_ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", ""): "open",
    ("GET", "/"): "open",
    ("GET", "/contests"): ALL,
    ("GET", "/contests/{contest}"): ALL,
    ("GET", "/contests/{contest}/access"): ALL,
    ("GET", "/contests/{contest}/account"): ALL,
    ("GET", "/contests/{contest}/state"): ALL,
    ("GET", "/contests/{contest}/scoreboard"): ALL,
    ("GET", "/contests/{contest}/{collection}"): ALL,
    ("GET", "/contests/{contest}/{collection}/{object_id}"): ALL,
}
PREFIXES = ("/api/2023-06", "/api/2026-01", "/api/v4", "/api")

ROUTES: dict[tuple[str, str], set[str] | str] = {
    (method, f"{prefix}{path}"): roles for prefix in PREFIXES for (method, path), roles in _ROUTES.items()
}
