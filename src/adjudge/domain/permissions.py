"""Who may do what: permission points, and the roles that are made of them.

A route asks for a point, never for a role. Whether *this* object may be seen or changed (another user's submission, a
draft of somebody else's) is decided where the object is read.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import is_id

_USER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,38}")


class Permission(StrEnum):
    """One thing that somebody may or may not do."""

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
    """No rate, no quota, no cap in flight; the queue's own limit holds for all but admins."""
    REJUDGE_READ = "rejudge:read"
    REJUDGE_WRITE = "rejudge:write"
    REJUDGE_APPLY = "rejudge:apply"
    EXECUTION_CREATE = "execution:create"
    CHAIN_READ = "chain:read"
    CHAIN_WRITE = "chain:write"
    RUN_READ = "run:read"
    RUN_READ_ALL = "run:read_all"
    RUN_ANSWER = "run:answer"
    """Answering questions of nodes that name one; ``run:control`` will do as well."""
    RUN_CONTROL = "run:control"
    RUN_CONTROL_ALL = "run:control_all"
    SECRET_WRITE = "secret:write"  # noqa: S105  # a permission
    """Setting, listing and deleting named secrets; nobody reads one back."""
    SECRET_USE = "secret:use"  # noqa: S105  # a permission
    """Saving chains that refer to secrets, and starting them."""
    ACCOUNT_OWN = "account:own"
    WEBHOOK_OWN = "webhook:own"
    USER_READ = "user:read"
    USER_WRITE = "user:write"
    OPS_READ = "ops:read"
    OPS_CONTROL = "ops:control"


class Role(StrEnum):
    """A name for a set of points, given to a user."""

    ADMIN = "admin"
    SETTER = "setter"
    JUDGE = "judge"
    CONTESTANT = "contestant"
    SERVICE = "service"


_P = Permission

ANONYMOUS_PERMISSIONS: Final = frozenset({_P.PROBLEM_READ})
"""What a visitor who is not logged in may do, where the settings let visitors in at all."""

_CONTESTANT: Final = ANONYMOUS_PERMISSIONS | {
    _P.SUBMISSION_CREATE,
    _P.SUBMISSION_READ,
    _P.SUBMISSION_CANCEL,
    _P.EXECUTION_CREATE,
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
"""The scope of a token that may do all that its user may."""


def effective_permissions(role: Role, scopes: frozenset[str]) -> frozenset[Permission]:
    """What a token of a user with ``role`` may do: never more than its user, never more than its scopes."""
    points = ROLE_PERMISSIONS[role]
    return points if ALL_SCOPES in scopes else frozenset(point for point in points if point in scopes)


def parse_user_name(given: str) -> str:
    """Return a user's name in its one spelling, so that nobody can pass for somebody else by a capital letter."""
    name = given.strip().lower()
    if not _USER_NAME.fullmatch(name) or is_id(name):
        raise InvalidInput("name: must match [a-z0-9][a-z0-9._-]{1,38} and must not be an id.", field="name")
    return name
