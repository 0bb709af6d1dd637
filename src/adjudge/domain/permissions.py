"""Permissions, and the roles that consist of them.

A route requires a permission, never a role. Access to a particular object (another user's submission or draft) is
checked where the object is read.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import is_id

_USER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,38}")


class Permission(StrEnum):
    """A permission: one kind of operation."""

    PROBLEM_READ = "problem:read"
    PROBLEM_READ_DRAFT = "problem:read_draft"
    PROBLEM_WRITE = "problem:write"
    PROBLEM_PUBLISH = "problem:publish"
    SUBMISSION_CREATE = "submission:create"
    SUBMISSION_READ = "submission:read"
    SUBMISSION_READ_ALL = "submission:read_all"
    SUBMISSION_CANCEL = "submission:cancel"
    SUBMISSION_CANCEL_ALL = "submission:cancel_all"
    SUBMISSION_CHANGE = "submission:change"
    SUBMISSION_UNLIMITED = "submission:unlimited"
    """No rate limit, quota or in-flight limit; the queue limit applies to all but admins."""
    REJUDGE_READ = "rejudge:read"
    REJUDGE_WRITE = "rejudge:write"
    REJUDGE_APPLY = "rejudge:apply"
    EXECUTION_CREATE = "execution:create"
    CONTEST_READ = "contest:read"
    """Reading contests; what is visible in one depends on the role there and on its phase."""
    CONTEST_JOIN = "contest:join"
    """Taking part in contests: registering, asking for clarifications, printing."""
    CONTEST_JURY = "contest:jury"
    """Overriding verdicts and adding penalties in contests; the role in the contest is also required."""
    CONTEST_CREATE = "contest:create"
    """Creating contests; the creator is the organiser."""
    CONTEST_ADMIN = "contest:admin"
    """All rights of an organiser in every contest."""
    CHAIN_READ = "chain:read"
    CHAIN_WRITE = "chain:write"
    RUN_READ = "run:read"
    RUN_READ_ALL = "run:read_all"
    RUN_ANSWER = "run:answer"
    """Answering approval nodes that require it; ``run:control`` also suffices."""
    RUN_CONTROL = "run:control"
    RUN_CONTROL_ALL = "run:control_all"
    SECRET_WRITE = "secret:write"  # noqa: S105  # a permission
    """Setting, listing and deleting named secrets; their values cannot be read."""
    SECRET_USE = "secret:use"  # noqa: S105  # a permission
    """Saving and starting chains that refer to secrets."""
    ACCOUNT_OWN = "account:own"
    WEBHOOK_OWN = "webhook:own"
    USER_READ = "user:read"
    USER_WRITE = "user:write"
    OPS_READ = "ops:read"
    OPS_CONTROL = "ops:control"


class Role(StrEnum):
    """A named set of permissions, assigned to users."""

    ADMIN = "admin"
    SETTER = "setter"
    JUDGE = "judge"
    CONTESTANT = "contestant"
    SERVICE = "service"


_P = Permission

ANONYMOUS_PERMISSIONS: Final = frozenset({_P.PROBLEM_READ, _P.CONTEST_READ})
"""Permissions of a visitor who is not logged in, if ``accounts.visitors_may_read`` is on."""

_CONTESTANT: Final = ANONYMOUS_PERMISSIONS | {
    _P.SUBMISSION_CREATE,
    _P.SUBMISSION_READ,
    _P.SUBMISSION_CANCEL,
    _P.EXECUTION_CREATE,
    _P.CONTEST_JOIN,
    _P.CONTEST_JURY,
    _P.ACCOUNT_OWN,
    _P.WEBHOOK_OWN,
}

ROLE_PERMISSIONS: Final[dict[Role, frozenset[Permission]]] = {
    Role.CONTESTANT: _CONTESTANT,
    Role.SERVICE: _CONTESTANT
    | {_P.SUBMISSION_UNLIMITED, _P.CHAIN_READ, _P.RUN_READ, _P.RUN_ANSWER, _P.RUN_CONTROL, _P.SECRET_USE},
    Role.SETTER: _CONTESTANT
    | {
        _P.SUBMISSION_UNLIMITED,
        _P.PROBLEM_WRITE,
        _P.PROBLEM_PUBLISH,
        _P.CONTEST_CREATE,
        _P.CHAIN_READ,
        _P.RUN_READ,
        _P.RUN_ANSWER,
        _P.RUN_CONTROL,
        _P.SECRET_USE,
        _P.REJUDGE_READ,
    },
    Role.JUDGE: _CONTESTANT
    | {
        _P.PROBLEM_READ_DRAFT,
        _P.CONTEST_CREATE,
        _P.SUBMISSION_READ_ALL,
        _P.SUBMISSION_CANCEL_ALL,
        _P.SUBMISSION_CHANGE,
        _P.SUBMISSION_UNLIMITED,
        _P.REJUDGE_READ,
        _P.REJUDGE_WRITE,
        _P.REJUDGE_APPLY,
        _P.CHAIN_READ,
        _P.RUN_READ,
        _P.RUN_READ_ALL,
        _P.RUN_ANSWER,
        _P.OPS_READ,
    },
    Role.ADMIN: frozenset(Permission),
}
ALL_SCOPES: Final = "*"
"""The scope of a token with all permissions of its user."""


def effective_permissions(role: Role, scopes: frozenset[str]) -> frozenset[Permission]:
    """Permissions of a token: those of the user's role, restricted to the token's scopes."""
    points = ROLE_PERMISSIONS[role]
    return points if ALL_SCOPES in scopes else frozenset(point for point in points if point in scopes)


def parse_user_name(given: str) -> str:
    """Normalize a user name; case differences must not create a second, similar name."""
    name = given.strip().lower()
    if not _USER_NAME.fullmatch(name) or is_id(name):
        raise InvalidInput("name: must match [a-z0-9][a-z0-9._-]{1,38} and must not be an id.", field="name")
    return name
