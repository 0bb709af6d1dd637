"""What operators see and do."""

from tests.unit.api.access_tables import ADMIN, STAFF

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/api/v1/ops/status"): STAFF,
    ("GET", "/api/v1/ops/health"): STAFF,
    ("GET", "/api/v1/ops/workers"): STAFF,
    ("GET", "/api/v1/ops/processes"): STAFF,
    ("GET", "/api/v1/ops/queue"): STAFF,
    ("GET", "/api/v1/ops/queues"): STAFF,
    ("GET", "/api/v1/ops/outbox"): STAFF,
    ("GET", "/api/v1/ops/config"): ADMIN,
    ("GET", "/api/v1/ops/dead-letters"): STAFF,
    ("GET", "/api/v1/ops/dead-letters/{letter_id}"): STAFF,
    ("POST", "/api/v1/ops/dead-letters:replay"): ADMIN,
    ("POST", "/api/v1/ops/dead-letters:discard"): ADMIN,
    ("POST", "/api/v1/ops/dead-letters:replay-matching"): ADMIN,
    ("POST", "/api/v1/ops/dead-letters:discard-matching"): ADMIN,
    ("GET", "/api/v1/ops/judging-pauses"): STAFF,
    ("POST", "/api/v1/ops/judging-pauses"): ADMIN,
    ("POST", "/api/v1/ops/judging-pauses:resume"): ADMIN,
    ("POST", "/api/v1/ops/workers/{name}/control"): ADMIN,
    ("GET", "/api/v1/ops/audit"): ADMIN,
    ("GET", "/api/v1/ops/jobs/{job_id}"): STAFF,
}
