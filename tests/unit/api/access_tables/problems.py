"""Problems, imports, languages. Whose problem it is, and whether it is a draft, is decided behind these."""

from tests.unit.api.access_tables import ALL

SETTERS = {"admin", "setter"}

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/api/v1/problems"): ALL,
    ("GET", "/api/v1/problems/{problem}"): ALL,
    ("GET", "/api/v1/problems/{problem}/files/{name:path}"): ALL,
    ("GET", "/api/v1/problems/{problem}/revisions"): ALL,  # 404 for users who may not see drafts, as all five below
    ("GET", "/api/v1/problems/{problem}/revisions/{number}"): ALL,
    ("GET", "/api/v1/problems/{problem}/revisions/{number}/preview"): ALL,
    ("GET", "/api/v1/problems/{problem}/revisions/{number}/files/{path:path}"): ALL,
    ("GET", "/api/v1/problems/{problem}/revisions/{number}/tests"): ALL,
    ("GET", "/api/v1/problems/{problem}/diff"): ALL,
    ("POST", "/api/v1/problems:import"): SETTERS,
    ("GET", "/api/v1/problems/{problem}/state"): SETTERS,
    ("PATCH", "/api/v1/problems/{problem}"): SETTERS,
    ("POST", "/api/v1/problems/{problem}:publish"): SETTERS,
    ("POST", "/api/v1/problems/{problem}:rollback"): SETTERS,
    ("POST", "/api/v1/problems/{problem}:withdraw"): SETTERS,
    ("POST", "/api/v1/problems/{problem}/revisions/{number}:verify"): SETTERS,
    ("GET", "/api/v1/imports"): SETTERS,
    ("GET", "/api/v1/imports/{import_id}"): SETTERS,
    ("GET", "/api/v1/imports/{import_id}/events"): SETTERS,
    ("POST", "/api/v1/imports/{import_id}:cancel"): SETTERS,
    ("GET", "/api/v1/languages"): ALL,
    ("GET", "/api/v1/languages/{language}/template"): ALL,
}
