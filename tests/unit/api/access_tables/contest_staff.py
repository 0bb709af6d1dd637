"""Routes of balloon staff. They are ordinary users: the service checks their role in the contest."""

from tests.unit.api.access_tables import USERS

_CONTEST = "/api/v1/contests/{contest}"

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", f"{_CONTEST}/balloons"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:deliver"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:undo"): USERS,
    ("POST", f"{_CONTEST}/balloons/{{participant}}/{{label}}:collect"): USERS,
}
