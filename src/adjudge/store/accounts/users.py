"""Users, their roles and passwords, and the identities of single sign-on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from adjudge.domain.authority import Grant, GrantedRole
from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Role
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.rows import column_values, decode_json
from adjudge.store.engine.statement import Statement


@dataclass(frozen=True, slots=True)
class NewUser:
    """A user to be created. A user with no password hash cannot log in with a password."""

    id: str
    name: str
    email: str | None = None
    password_hash: str | None = None
    role: str = "contestant"
    display_name: str | None = None
    must_change_password: bool = False


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user, without anything secret."""

    id: str
    name: str
    email: str | None
    display_name: str | None
    role: Role
    disabled_at: int | None
    must_change_password: bool
    created_at: int
    updated_at: int

    @property
    def disabled(self) -> bool:
        return self.disabled_at is not None


@dataclass(frozen=True, slots=True)
class UserWithPassword:
    """A user and the password hash; without a hash there is no login by password."""

    user: UserRow
    password_hash: str | None


FIND_BY_NAME = Statement(
    "users.find_by_name",
    "Read a user and password hash by name.",
    "SELECT {columns} FROM users WHERE name = :name",
    row=UserWithPassword,
)

DISABLE = Statement(
    "users.disable",
    "Disable a user.",
    "UPDATE users SET disabled_at = COALESCE(disabled_at, {now}), updated_at = {now} WHERE id = :id",
)

ENABLE = Statement(
    "users.enable",
    "Enable a user.",
    "UPDATE users SET disabled_at = NULL, updated_at = {now} WHERE id = :id",
)

NAMES = Statement(
    "users.names",
    "Read the names of users.",
    "SELECT id, name FROM {given} JOIN users ON users.id = given_id",
    input_columns={"given_id": "text"},
)
ANY = Statement("users.any", "Check whether any user exists.", "SELECT id FROM users LIMIT 1")


def actor_name(column: str) -> str:
    """SQL expression of how an actor is shown: the name of a user, other actors as they are stored."""
    return f"COALESCE((SELECT users.name FROM users WHERE users.id = {column}), {column})"


INSERT = Statement(
    "users.insert",
    "Create a user.",
    """
    INSERT INTO users (id, name, email, display_name, password_hash, must_change_password, role, created_at, updated_at)
    VALUES (:id, :name, :email, :display_name, :password_hash, :must_change_password, :role, {now}, {now})
    """,
)

FIND = Statement("users.find", "Read one user.", "SELECT {columns} FROM users WHERE id = :id", row=UserRow)

FIND_BY_NAME_OR_EMAIL = Statement(
    "users.find_by_name_or_email",
    "Find the enabled user with a password and an address whose name or address is given.",
    """
    SELECT {columns} FROM users
    WHERE (name = :name OR email = :email OR email = lower(:email)) AND email IS NOT NULL
      AND password_hash IS NOT NULL AND disabled_at IS NULL
    ORDER BY CASE WHEN name = :name THEN 0 ELSE 1 END LIMIT 1
    """,
    row=UserRow,
)

FIND_WITH_PASSWORD = Statement(
    "users.find_with_password",
    "Read a user and password hash by id.",
    "SELECT {columns} FROM users WHERE id = :id",
    row=UserWithPassword,
)

FIND_VALID_WITH_PASSWORD = Statement(
    "users.find_valid_with_password",
    "Read those of the given users who may log in, with their password hashes.",
    """
    SELECT {columns:users} FROM {given} JOIN users ON users.id = given_id
    WHERE users.disabled_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM contest_accounts WHERE contest_accounts.user_id = users.id
                      AND temporary AND (contest_accounts.disabled_at IS NOT NULL
                                     OR contest_accounts.expires_at <= {now}))
    """,
    input_columns={"given_id": "text"},
    row=UserWithPassword,
)

PAGE = Statement(
    "users.page",
    "List users by name, optionally by substring and role, keyset-paginated.",
    """
    SELECT {columns} FROM users
    WHERE name > :after AND name LIKE :pattern ESCAPE '!' AND (role = :role OR :role = '')
    ORDER BY name LIMIT :limit
    """,
    row=UserRow,
)

UPDATE_PROFILE = Statement(
    "users.update_profile",
    "Update a user's email and display name.",
    "UPDATE users SET email = :email, display_name = :display_name, updated_at = {now} WHERE id = :id",
)

UPDATE_ROLE = Statement(
    "users.update_role", "Update a user's role.", "UPDATE users SET role = :role, updated_at = {now} WHERE id = :id"
)

UPDATE_PASSWORD = Statement(
    "users.update_password",
    "Update a user's password hash.",
    """
    UPDATE users SET password_hash = :password_hash, must_change_password = :must_change_password, updated_at = {now}
    WHERE id = :id
    """,
)

UPDATE_PASSWORD_HASH = Statement(
    "users.update_password_hash",
    "Replace an outdated password hash unless the password was changed.",
    "UPDATE users SET password_hash = :fresh WHERE id = :id AND password_hash = :stale",
)

COUNT_OTHER_ADMINS = Statement(
    "users.count_other_admins",
    "Count enabled admins except one.",
    "SELECT count(*) AS n FROM users WHERE role = 'admin' AND disabled_at IS NULL AND id <> :except_id",
)


async def insert(tx: Tx, user: NewUser) -> None:
    """Create a user; a name or email address that is taken is a Conflict that names the field."""
    await tx.execute(INSERT, **column_values(user))


async def find(tx: Tx, user_id: str) -> UserRow:
    return or_not_found(await fetch_one(tx, FIND, id=user_id), "user", user_id)


async def find_with_password_by_name(tx: Tx, name: str) -> UserWithPassword | None:
    """Read a user with the password hash, for a login."""
    return await fetch_one(tx, FIND_BY_NAME, name=name)


async def find_for_reset(tx: Tx, who: str) -> UserRow | None:
    """The user who may get a password reset by mail, by name or address."""
    return await fetch_one(tx, FIND_BY_NAME_OR_EMAIL, name=who.lower(), email=who)


async def find_valid_with_password(tx: Tx, user_ids: Collection[str]) -> list[UserWithPassword]:
    """Those of the users who may log in, with their password hashes."""
    return await tx.fetch(FIND_VALID_WITH_PASSWORD, [(item,) for item in sorted(user_ids)])


async def find_with_password(tx: Tx, user_id: str) -> UserWithPassword:
    """Read a user with the password hash, to check the password again."""
    return or_not_found(await fetch_one(tx, FIND_WITH_PASSWORD, id=user_id), "user", user_id)


async def page(tx: Tx, *, search: str = "", role: str = "", after: str = "", limit: int = 20) -> list[UserRow]:
    """List users by name; ``after`` is the last name of the previous page."""
    escaped = search.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return await tx.fetch(PAGE, pattern=f"%{escaped}%", role=role, after=after, limit=limit)


async def find_names(tx: Tx, user_ids: Collection[str]) -> dict[str, str]:
    """The names of the users that exist, by id."""
    return {row["id"]: row["name"] for row in await tx.fetch(NAMES, [(user_id,) for user_id in user_ids])}


async def update_profile(tx: Tx, user_id: str, *, email: str | None, display_name: str | None) -> None:
    await _changed(tx, UPDATE_PROFILE, user_id, email=email, display_name=display_name)


async def update_role(tx: Tx, user_id: str, role: Role) -> None:
    await _changed(tx, UPDATE_ROLE, user_id, role=role.value)


async def update_password(tx: Tx, user_id: str, password_hash: str, *, must_change: bool) -> None:
    await _changed(tx, UPDATE_PASSWORD, user_id, password_hash=password_hash, must_change_password=must_change)


async def update_password_hash(tx: Tx, user_id: str, *, stale: str, fresh: str) -> None:
    """Replace the hash of the same password, for example by one with stronger parameters."""
    await tx.execute(UPDATE_PASSWORD_HASH, id=user_id, stale=stale, fresh=fresh)


async def set_disabled(tx: Tx, user_id: str, *, disabled: bool) -> None:
    await _changed(tx, DISABLE if disabled else ENABLE, user_id)


async def count_other_admins(tx: Tx, user_id: str) -> int:
    """The number of enabled admins besides this user."""
    return int((await tx.fetch(COUNT_OTHER_ADMINS, except_id=user_id))[0]["n"])


async def any_exist(tx: Tx) -> bool:
    """Whether any user exists; false on the first start."""
    return await fetch_one(tx, ANY) is not None


async def _changed(tx: Tx, statement: Statement, user_id: str, **values: object) -> None:
    if not await tx.execute(statement, id=user_id, **values):
        raise NotFound("user", user_id)


FIND_ID = Statement(
    "users.find_id",
    "Find a user's id by name or id.",
    "SELECT id FROM users WHERE id = :who OR name = :who ORDER BY id = :who DESC LIMIT 1",
)

FIND_ROLE = Statement(
    "users.find_role",
    "Find which of the given users and tokens may still act; a password that must be changed stops sessions only.",
    """
    SELECT users.id AS user_id, given_token_id AS token_id, users.role AS role, api_tokens.scopes AS scopes
    FROM {given} JOIN users ON users.id = given_user_id AND users.disabled_at IS NULL
    LEFT JOIN api_tokens ON api_tokens.id = given_token_id AND api_tokens.user_id = users.id
         AND api_tokens.revoked_at IS NULL AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    WHERE CASE WHEN given_token_id IS NULL THEN NOT must_change_password ELSE api_tokens.id IS NOT NULL END
    """,
    input_columns={"given_user_id": "text", "given_token_id": "text"},
)


async def find_id(tx: Tx, who: str) -> str | None:
    """The id of the user with this id or name."""
    row = await fetch_one(tx, FIND_ID, who=who)
    return str(row["id"]) if row else None


async def find_role(tx: Tx, grants: Sequence[Grant]) -> list[GrantedRole]:
    """Those of the grants that hold now: the user is not disabled, the token was not revoked and has not expired."""
    rows = await tx.fetch(FIND_ROLE, [(grant.user_id, grant.token_id) for grant in grants])
    return [
        GrantedRole(Grant(row["user_id"]), Role(row["role"]))
        if row["token_id"] is None
        else GrantedRole(
            Grant(row["user_id"], row["token_id"]), Role(row["role"]), frozenset(decode_json(row["scopes"]))
        )
        for row in rows
    ]


FIND_IDENTITY = Statement(
    "identities.find",
    "Find the user of an identity provider's subject.",
    "SELECT user_id FROM identities WHERE issuer = :issuer AND subject = :subject",
)

LINK_IDENTITY = Statement(
    "identities.link",
    "Link an identity provider's subject to a user.",
    "INSERT INTO identities (issuer, subject, user_id, created_at) VALUES (:issuer, :subject, :user_id, {now})",
)


async def find_user_by_identity(tx: Tx, *, issuer: str, subject: str) -> str | None:
    """The id of the user that is linked to a subject of an identity provider."""
    row = await fetch_one(tx, FIND_IDENTITY, issuer=issuer, subject=subject)
    return None if row is None else str(row["user_id"])


async def link_identity(tx: Tx, *, issuer: str, subject: str, user_id: str) -> None:
    await tx.execute(LINK_IDENTITY, issuer=issuer, subject=subject, user_id=user_id)
