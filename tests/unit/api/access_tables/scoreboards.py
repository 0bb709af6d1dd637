"""Scoreboards of contests. What of them a viewer sees is decided by the service, from the visibility table."""

from tests.unit.api.access_tables import ALL, USERS

_CONTEST = "/api/v1/contests/{contest}"

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", f"{_CONTEST}/scoreboard"): ALL,
    ("GET", f"{_CONTEST}/scoreboard/events"): ALL,
    ("GET", f"{_CONTEST}/scoreboard/filters"): ALL,
    ("GET", f"{_CONTEST}/scoreboard/cells/{{participant}}/{{label}}"): ALL,
    ("GET", f"{_CONTEST}/scoreboard.json"): ALL,
    ("GET", f"{_CONTEST}/scoreboard.csv"): ALL,
    ("GET", f"{_CONTEST}/scoreboard.html"): ALL,
    ("GET", f"{_CONTEST}/awards.json"): ALL,
    ("GET", f"{_CONTEST}/results.tsv"): ALL,
    ("GET", f"{_CONTEST}/awards"): ALL,
    ("PUT", f"{_CONTEST}/awards"): USERS,
    ("PUT", f"{_CONTEST}/awards/{{award}}"): USERS,
    ("DELETE", f"{_CONTEST}/awards/{{award}}"): USERS,
    ("GET", f"{_CONTEST}/participants/{{participant}}/photo"): ALL,
    ("PUT", f"{_CONTEST}/participants/{{participant}}/photo"): USERS,
    ("DELETE", f"{_CONTEST}/participants/{{participant}}/photo"): USERS,
    ("GET", f"{_CONTEST}/resolver"): ALL,
    ("GET", f"{_CONTEST}/statistics"): ALL,
}
