"""Chains, triggers, runs, named secrets."""

from tests.unit.api.access_tables import ADMIN

READERS = {"admin", "setter", "judge", "service"}
CONTROLLERS = {"admin", "setter", "service"}

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/api/v1/chains"): READERS,
    ("POST", "/api/v1/chains"): ADMIN,
    ("POST", "/api/v1/chains:apply"): ADMIN,
    ("GET", "/api/v1/chains/{chain}"): READERS,
    ("PUT", "/api/v1/chains/{chain}"): ADMIN,
    ("GET", "/api/v1/chains/{chain}/versions"): READERS,
    ("POST", "/api/v1/chains/{chain}:enable"): ADMIN,
    ("POST", "/api/v1/chains/{chain}:disable"): ADMIN,
    ("POST", "/api/v1/chains/{chain}:start"): CONTROLLERS,
    ("GET", "/api/v1/chains/{chain}/triggers"): READERS,
    ("POST", "/api/v1/chains/{chain}/triggers"): ADMIN,
    ("PATCH", "/api/v1/triggers/{trigger_id}"): ADMIN,
    ("DELETE", "/api/v1/triggers/{trigger_id}"): ADMIN,
    ("POST", "/api/v1/triggers/{trigger_id}:call"): "open",  # its secret is the credential
    ("GET", "/api/v1/executors"): READERS,
    ("GET", "/api/v1/secrets"): ADMIN,
    ("PUT", "/api/v1/secrets/{name}"): ADMIN,
    ("DELETE", "/api/v1/secrets/{name}"): ADMIN,
    ("GET", "/api/v1/runs"): READERS,
    ("GET", "/api/v1/chains/{chain}/runs/{number}"): READERS,
    ("GET", "/api/v1/runs/{run_id}"): READERS,
    ("GET", "/api/v1/runs/{run_id}/dag"): READERS,
    ("GET", "/api/v1/runs/{run_id}/log"): READERS,
    ("GET", "/api/v1/runs/{run_id}/events"): READERS,
    ("GET", "/api/v1/runs/{run_id}/nodes"): READERS,
    ("GET", "/api/v1/runs/{run_id}/nodes/{node_id}"): READERS,
    ("GET", "/api/v1/runs/{run_id}/nodes/{node_id}/artifact"): READERS,
    ("GET", "/api/v1/runs/{run_id}/nodes/{node_id}/log"): READERS,
    ("GET", "/api/v1/runs/{run_id}/nodes/{node_id}/files/{digest}"): READERS,
    ("POST", "/api/v1/files"): CONTROLLERS,
    ("POST", "/api/v1/runs/{run_id}:stop"): CONTROLLERS,
    ("POST", "/api/v1/runs/{run_id}:rerun"): CONTROLLERS,
    ("POST", "/api/v1/runs/{run_id}/nodes/{node_id}:retry"): CONTROLLERS,
    ("POST", "/api/v1/runs/{run_id}/nodes/{node_id}:complete"): CONTROLLERS,
    ("POST", "/api/v1/runs/{run_id}/nodes/{node_id}:decide"): READERS,
    ("POST", "/api/v1/runs/{run_id}/nodes/{node_id}:approve"): READERS,
    ("POST", "/api/v1/runs/{run_id}/nodes/{node_id}:reject"): READERS,
}
