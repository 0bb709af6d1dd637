"""Routes of materials, balloons and prints. The service checks the roles in the contest."""

from tests.unit.api.access_tables import ALL, USERS

_CONTEST = "/api/v1/contests/{contest}"

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", f"{_CONTEST}/balloons"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:deliver"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:undo"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:collect"): USERS,
    ("GET", f"{_CONTEST}/package"): USERS,
    ("GET", f"{_CONTEST}/materials"): ALL,
    ("GET", f"{_CONTEST}/materials/{{material}}"): ALL,
    ("PUT", f"{_CONTEST}/materials/{{material}}"): USERS,
    ("PATCH", f"{_CONTEST}/materials/{{material}}"): USERS,
    ("DELETE", f"{_CONTEST}/materials/{{material}}"): USERS,
    ("GET", f"{_CONTEST}/prints"): USERS,
    ("POST", f"{_CONTEST}/prints"): USERS,
    ("GET", f"{_CONTEST}/prints/{{print_number}}/text"): USERS,
    ("GET", f"{_CONTEST}/prints/{{print_number}}/pages"): USERS,
    ("POST", f"{_CONTEST}/prints/{{print_number}}:claim"): USERS,
    ("POST", f"{_CONTEST}/prints/{{print_number}}:finish"): USERS,
    ("POST", f"{_CONTEST}/prints/{{print_number}}:requeue"): USERS,
}
