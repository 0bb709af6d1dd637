"""Every failure Adjudge can name, as one tree with stable codes.

::

    AdjudgeError
    ├── InvalidInput            400  the caller can fix it
    │   ├── InvalidStatus            a status value that does not exist
    │   └── InvalidTransition        an edge the state machine does not have
    ├── Unauthenticated         401  we do not know who you are
    ├── Forbidden               403  we do, and you may not
    ├── NotFound                404  <KIND>_NOT_FOUND
    ├── Conflict                409  somebody else was first
    │   └── FenceRefused             a write by a claimant that no longer holds the job
    ├── Unavailable             503  a part we need is away: try again
    │   └── OutcomeUnknown           a commit was sent and its answer lost: look it up
    └── InternalFault           500  our own fault

A class's docstring is its default message. ``code`` is stable and documented; ``fields`` carry what a reader needs
to act (ids, the offending field), never secrets.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class AdjudgeError(Exception):
    """Adjudge could not do that."""

    code: str = "ERROR"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **fields: object) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.fields = fields
        super().__init__(self.message)


class InvalidInput(AdjudgeError):
    """The request cannot be used as it is."""

    code = "INVALID_INPUT"
    http_status = 400


class InvalidStatus(InvalidInput):
    """That status does not exist."""

    code = "INVALID_STATUS"


class InvalidTransition(InvalidInput):
    """That change of status is not allowed."""

    code = "INVALID_TRANSITION"


class Unauthenticated(AdjudgeError):
    """Log in, or send an API token."""

    code = "UNAUTHENTICATED"
    http_status = 401


class Forbidden(AdjudgeError):
    """You may not do that."""

    code = "FORBIDDEN"
    http_status = 403


class NotFound(AdjudgeError):
    """There is no such object."""

    http_status = 404

    def __init__(self, kind: str, object_id: str) -> None:
        self.code = f"{kind.upper()}_NOT_FOUND"
        super().__init__(f"There is no {kind.replace('_', ' ')} {object_id!r}.", kind=kind, id=object_id)


class Conflict(AdjudgeError):
    """Somebody else changed it first: read it again, then decide."""

    code = "CONFLICT"
    http_status = 409


class RefusalReason(StrEnum):
    """Why a guarded write changed no row. An update of no rows is never silent."""

    NOT_FOUND = "not_found"
    NOT_DUE = "not_due"
    STALE_ATTEMPT = "stale_attempt"
    ALREADY_FINISHED = "already_finished"
    NOT_IN_EXPECTED_STATE = "not_in_expected_state"
    LEASE_LOST_OR_OWNER_MISMATCH = "lease_lost_or_owner_mismatch"
    LEASE_STILL_VALID = "lease_still_valid"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    VERSION_CONFLICT = "version_conflict"


class FenceRefused(Conflict):
    """This claim of the job is no longer the one that may write."""

    def __init__(self, job_id: str, reason: RefusalReason) -> None:
        self.reason = reason
        super().__init__(f"Job {job_id!r} refused the write: {reason}.", job_id=job_id, reason=str(reason))


class Unavailable(AdjudgeError):
    """A part that is needed is away for the moment: try again."""

    code = "UNAVAILABLE"
    http_status = 503
    retryable = True


class OutcomeUnknown(Unavailable):
    """The commit was sent and its answer lost: look the outcome up before trying again."""

    code = "OUTCOME_UNKNOWN"


class InternalFault(AdjudgeError):
    """Adjudge failed at its own work."""

    code = "INTERNAL_FAULT"
