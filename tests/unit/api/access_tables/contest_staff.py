"""Routes of balloon and print staff. They are ordinary users: the service checks their role in the contest."""

from tests.unit.api.access_tables import USERS

_CONTEST = "/api/v1/contests/{contest}"

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", f"{_CONTEST}/balloons"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:deliver"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:undo"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:collect"): USERS,
    ("GET", f"{_CONTEST}/prints"): USERS,
    ("POST", f"{_CONTEST}/prints"): USERS,
    ("GET", f"{_CONTEST}/prints/{{print_number}}/text"): USERS,
    ("GET", f"{_CONTEST}/prints/{{print_number}}/pages"): USERS,
    ("POST", f"{_CONTEST}/prints/{{print_number}}:claim"): USERS,
    ("POST", f"{_CONTEST}/prints/{{print_number}}:finish"): USERS,
    ("POST", f"{_CONTEST}/prints/{{print_number}}:requeue"): USERS,
}
