"""Endpoints of DOMjudge. Roles in the contest are checked by the services."""

from tests.unit.api.access_tables import ALL, USERS

_ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/version"): ALL,
    ("GET", "/info"): ALL,
    ("GET", "/user"): USERS,
    ("GET", "/users"): USERS,
    ("POST", "/printing/team"): USERS,
    ("GET", "/contests/{contest}/"): ALL,
    ("GET", "/contests/{contest}/problems"): ALL,
    ("GET", "/contests/{contest}/judgements"): ALL,
    ("GET", "/contests/{contest}/submissions/{number}/source-code"): USERS,
    ("POST", "/contests"): {"setter", "judge", "admin"},
    ("POST", "/contests/{contest}/problems/add-data"): USERS,
    ("POST", "/contests/{contest}/problems"): {"setter", "admin"},
    ("POST", "/contests/{contest}/problemset"): USERS,
}

ROUTES: dict[tuple[str, str], set[str] | str] = {
    (method, f"{prefix}{path}"): roles for prefix in ("/api/v4", "/api") for (method, path), roles in _ROUTES.items()
}
