"""Routes of contests. Organisers are ordinary users: the service checks their role in the contest."""

from tests.unit.api.access_tables import ADMIN, ALL, USERS

CREATORS = {"admin", "setter", "judge"}

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/api/v1/contests"): ALL,
    ("POST", "/api/v1/contests"): CREATORS,
    ("GET", "/api/v1/contests/{contest}"): ALL,
    ("PATCH", "/api/v1/contests/{contest}"): USERS,
    ("POST", "/api/v1/contests/{contest}:clone"): CREATORS,
    ("GET", "/api/v1/contests/{contest}/problems"): ALL,
    ("PUT", "/api/v1/contests/{contest}/problems"): USERS,
    ("GET", "/api/v1/contests/{contest}/problems/{label}"): ALL,
    ("GET", "/api/v1/contests/{contest}/problems/{label}/files/{name:path}"): ALL,
    ("GET", "/api/v1/contests/{contest}/roles"): USERS,
    ("POST", "/api/v1/contests/{contest}/roles"): USERS,
    ("DELETE", "/api/v1/contests/{contest}/roles/{user}/{role}"): USERS,
    ("POST", "/api/v1/contests/{contest}:publish"): USERS,
    ("POST", "/api/v1/contests/{contest}:unpublish"): USERS,
    ("POST", "/api/v1/contests/{contest}:cancel"): USERS,
    ("GET", "/api/v1/contests/{contest}/blockers"): USERS,
    ("POST", "/api/v1/contests/{contest}:finalize"): USERS,
    ("POST", "/api/v1/contests/{contest}:reopen"): ADMIN,
    ("POST", "/api/v1/contests/{contest}:close-updates"): USERS,
    ("GET", "/api/v1/contests/{contest}/log"): USERS,
    ("POST", "/api/v1/contests/{contest}:start"): USERS,
    ("POST", "/api/v1/contests/{contest}:pause-countdown"): USERS,
    ("POST", "/api/v1/contests/{contest}:resume-countdown"): USERS,
    ("POST", "/api/v1/contests/{contest}:extend"): USERS,
    ("POST", "/api/v1/contests/{contest}:pause"): USERS,
    ("POST", "/api/v1/contests/{contest}:resume"): USERS,
    ("GET", "/api/v1/contests/{contest}/intervals"): USERS,
    ("POST", "/api/v1/contests/{contest}/intervals"): USERS,
    ("POST", "/api/v1/contests/{contest}/intervals/{interval_id}:undo"): USERS,
    ("POST", "/api/v1/contests/{contest}:freeze"): USERS,
    ("POST", "/api/v1/contests/{contest}:thaw"): USERS,
    ("GET", "/api/v1/ratings"): ALL,
    ("GET", "/api/v1/users/{user}/rating"): ALL,
}
