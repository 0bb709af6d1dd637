"""Routes of the participants of contests. Organisers are ordinary users: the service checks their role."""

from tests.unit.api.access_tables import ALL, USERS

ROUTES: dict[tuple[str, str], set[str] | str] = {
    ("POST", "/api/v1/contests/{contest}:register"): USERS,
    ("POST", "/api/v1/contests/{contest}:leave"): USERS,
    ("POST", "/api/v1/contests/{contest}:start-window"): USERS,
    ("POST", "/api/v1/contests/{contest}:start-virtual"): USERS,
    ("POST", "/api/v1/contests/{contest}:practise"): USERS,
    ("POST", "/api/v1/contests/{contest}/teams"): USERS,
    ("POST", "/api/v1/contests/{contest}/teams:join"): USERS,
    ("POST", "/api/v1/contests/{contest}/teams:renew-join-code"): USERS,
    ("GET", "/api/v1/contests/{contest}/participants"): ALL,
    ("POST", "/api/v1/contests/{contest}/participants"): USERS,
    ("GET", "/api/v1/contests/{contest}/participants/{participant}"): USERS,
    ("PATCH", "/api/v1/contests/{contest}/participants/{participant}"): USERS,
    ("DELETE", "/api/v1/contests/{contest}/participants/{participant}"): USERS,
    ("POST", "/api/v1/contests/{contest}/participants:import"): USERS,
    ("POST", "/api/v1/contests/{contest}/accounts:create-tokens"): USERS,
    ("GET", "/api/v1/contests/{contest}/groups"): ALL,
    ("PUT", "/api/v1/contests/{contest}/groups"): USERS,
    ("POST", "/api/v1/contests/{contest}/groups/{group}:times"): USERS,
    ("GET", "/api/v1/contests/{contest}/invitations"): USERS,
    ("POST", "/api/v1/contests/{contest}/invitations"): USERS,
    ("DELETE", "/api/v1/contests/{contest}/invitations/{invitation_id}"): USERS,
    ("GET", "/api/v1/contests/{contest}/organizations"): USERS,
    ("POST", "/api/v1/contests/{contest}/organizations"): USERS,
    ("GET", "/api/v1/contests/{contest}/accounts"): USERS,
    ("POST", "/api/v1/contests/{contest}/accounts:create"): USERS,
    ("POST", "/api/v1/contests/{contest}/accounts:renew-passwords"): USERS,
    ("POST", "/api/v1/contests/{contest}/accounts:disable"): USERS,
    ("POST", "/api/v1/contests/{contest}/accounts:enable"): USERS,
}
