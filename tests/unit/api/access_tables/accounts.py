"""Accounts, users, invitations, health, version."""

from tests.unit.api.access_tables import ADMIN, USERS

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("GET", "/api/v1/health/live"): "open",
    ("GET", "/api/v1/health/ready"): "open",
    ("GET", "/api/v1/version"): "open",
    ("GET", "/metrics"): "open",  # by server.metrics_networks, from this machine alone by default
    ("GET", "/api/v1/login"): "open",
    ("POST", "/api/v1/login"): "open",
    ("POST", "/api/v1/login:token"): "open",
    ("GET", "/api/v1/login/oidc"): "open",
    ("GET", "/api/v1/login/oidc/callback"): "open",
    ("POST", "/api/v1/register"): "open",  # by the setting accounts.registration
    ("POST", "/api/v1/logout"): USERS,
    ("GET", "/api/v1/me"): USERS,
    ("PATCH", "/api/v1/me"): USERS,
    ("POST", "/api/v1/me:password"): USERS,
    ("GET", "/api/v1/me/tokens"): USERS,
    ("POST", "/api/v1/me/tokens"): USERS,
    ("DELETE", "/api/v1/me/tokens/{token_id}"): USERS,
    ("GET", "/api/v1/me/sessions"): USERS,
    ("DELETE", "/api/v1/me/sessions/{session_id}"): USERS,
    ("GET", "/api/v1/users"): ADMIN,
    ("POST", "/api/v1/users"): ADMIN,
    ("GET", "/api/v1/users/{user_id}"): ADMIN,
    ("PATCH", "/api/v1/users/{user_id}"): ADMIN,
    ("POST", "/api/v1/users/{user_id}:disable"): ADMIN,
    ("POST", "/api/v1/users/{user_id}:enable"): ADMIN,
    ("POST", "/api/v1/users/{user_id}:reset_password"): ADMIN,
    ("POST", "/api/v1/users/{user_id}:reset-password"): ADMIN,
    ("GET", "/api/v1/invitations"): ADMIN,
    ("POST", "/api/v1/invitations"): ADMIN,
    ("DELETE", "/api/v1/invitations/{invitation_id}"): ADMIN,
}
