"""Routes of clarifications. The jury are ordinary users: the service checks their role in the contest."""

from tests.unit.api.access_tables import ALL, USERS

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/api/v1/contests/{contest}/clarifications"): ALL,
    ("POST", "/api/v1/contests/{contest}/clarifications"): USERS,
    ("GET", "/api/v1/contests/{contest}/clarifications/unread"): USERS,
    ("POST", "/api/v1/contests/{contest}/clarifications:mark-read"): USERS,
    ("POST", "/api/v1/contests/{contest}/announcements"): USERS,
    ("POST", "/api/v1/contests/{contest}/clarifications/{clarification_id}:answer"): USERS,
    ("POST", "/api/v1/contests/{contest}/clarifications/{clarification_id}:claim"): USERS,
    ("POST", "/api/v1/contests/{contest}/clarifications/{clarification_id}:release"): USERS,
    ("POST", "/api/v1/contests/{contest}/clarifications/{clarification_id}:close"): USERS,
    ("GET", "/api/v1/contests/{contest}/canned-answers"): USERS,
    ("POST", "/api/v1/contests/{contest}/canned-answers"): USERS,
    ("DELETE", "/api/v1/contests/{contest}/canned-answers/{answer_id}"): USERS,
}
