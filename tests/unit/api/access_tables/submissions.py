"""Who may ask for what about submissions; whose submission it is, is another question."""

EVERYBODY = {"admin", "setter", "judge", "contestant", "service"}
STAFF = {"admin", "judge"}

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("POST", "/api/v1/submissions"): EVERYBODY,
    ("POST", "/api/v1/submissions:batch"): EVERYBODY,
    ("GET", "/api/v1/submissions"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/source"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/files"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/files/{name:path}"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/archive"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/results"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/log"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/events"): EVERYBODY,
    ("GET", "/api/v1/submissions/{submission_id}/judge-runs"): EVERYBODY,
    ("POST", "/api/v1/submissions/{submission_id}:cancel"): EVERYBODY,
    ("POST", "/api/v1/submissions/{submission_id}:change-status"): STAFF,
    ("GET", "/api/v1/judge-runs/{job_id}"): EVERYBODY,
    ("GET", "/api/v1/judge-runs/{job_id}/results"): EVERYBODY,
    ("GET", "/api/v1/judge-runs/{job_id}/attempts"): STAFF,
    ("GET", "/api/v1/judge-runs/{job_id}/log"): STAFF,
    ("POST", "/api/v1/judge-runs/{job_id}:cancel"): STAFF,
    ("GET", "/api/v1/me/events"): EVERYBODY,
    ("GET", "/api/v1/events"): STAFF,
}
