"""The tree of Adjudge's errors, with stable codes.

::

    AdjudgeError
    ├── InvalidInput            400  the caller can fix it
    │   ├── InvalidStatus            a status value that does not exist
    │   ├── InvalidTransition        an edge the state machine does not have
    │   ├── ChainNameTaken           another chain has that name
    │   └── BackupDamaged            a backup cannot be read, or is incomplete
    ├── Unauthenticated         401  not logged in
    │   └── LoginFailed              wrong user name or password
    ├── Forbidden               403  permission denied
    │   ├── CsrfRefused              the CSRF check failed
    │   ├── PasswordChangeRequired   the user must choose a new password first
    │   └── ReauthenticationRequired the action needs the password again, or a recent login
    ├── NotFound                404  <KIND>_NOT_FOUND
    ├── Conflict                409  the state does not allow it
    │   ├── VersionConflict          the object changed since it was read
    │   ├── NameTaken                another object has that name
    │   ├── ChainDisabled            the chain is disabled
    │   ├── ChainFull                the chain has max_runs active runs and when_full is refuse
    │   ├── TriggerDisabled          the trigger is disabled
    │   ├── WrongRunState            the run's status does not allow it
    │   ├── WrongNodeState           the node's status does not allow it
    │   ├── IdempotencyKeyReused     the key was used for a different request
    │   ├── FenceRefused             a write of a worker that no longer holds the job
    │   └── NodeRefused              a chain node failed for good: another attempt would not help
    ├── BodyTooLarge            413  the request body exceeds the limit
    ├── TooManyRequests         429  retry after Retry-After
    │   ├── RateLimited              rate limit exceeded
    │   ├── QuotaExhausted           daily quota used up
    │   ├── StorageFull              storage limit of a user's executions reached
    │   ├── InFlightCap              too many unfinished submissions of one user
    │   ├── QueueFull                the queue is too long
    │   └── TooManyStreams           too many open event streams
    ├── Unavailable             503  a dependency is unavailable: retry
    │   ├── NoWorkerForLanguage      no live worker supports the language
    │   ├── JudgingPaused            judging is paused by an operator
    │   ├── TimedOut                 the request timed out
    │   └── OutcomeUnknown           the connection was lost during a commit
    └── InternalFault           500  internal error
        └── NodeFailed               a chain node failed; another attempt may help

The docstring of a class is its default message. ``code`` is stable and documented; ``fields`` have ids and names that
help the caller to act, never secrets.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class AdjudgeError(Exception):
    """The operation failed."""

    code: str = "ERROR"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **fields: object) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.fields = fields
        super().__init__(self.message)


class InvalidInput(AdjudgeError):
    """Invalid request."""

    code = "INVALID_INPUT"
    http_status = 400


class InvalidStatus(InvalidInput):
    """Unknown status."""

    code = "INVALID_STATUS"


class InvalidTransition(InvalidInput):
    """Status transition not allowed."""

    code = "INVALID_TRANSITION"


class ChainNameTaken(InvalidInput):
    """A chain with that name exists: choose another name."""

    code = "CHAIN_NAME_TAKEN"


class BackupDamaged(InvalidInput):
    """The backup is damaged."""

    code = "BACKUP_DAMAGED"


class Unauthenticated(AdjudgeError):
    """Authentication required: log in or send an API token."""

    code = "UNAUTHENTICATED"
    http_status = 401


class Forbidden(AdjudgeError):
    """Permission denied."""

    code = "FORBIDDEN"
    http_status = 403


class LoginFailed(Unauthenticated):
    """Wrong user name or password."""

    code = "LOGIN_FAILED"


class CsrfRefused(Forbidden):
    """CSRF check failed: reload the page, or use an API token."""

    code = "CSRF_REFUSED"


class PasswordChangeRequired(Forbidden):
    """Password change required: log in with a browser and choose a new password."""

    code = "PASSWORD_CHANGE_REQUIRED"


class ReauthenticationRequired(Forbidden):
    """Confirm this action with your password, or log in again and repeat it within a few minutes."""

    code = "REAUTHENTICATION_REQUIRED"


class NotFound(AdjudgeError):
    """Object not found."""

    http_status = 404

    def __init__(self, kind: str, object_id: str) -> None:
        self.code = f"{kind.upper()}_NOT_FOUND"
        super().__init__(f"Not found: {kind.replace('_', ' ')} {object_id!r}.", kind=kind, id=object_id)


class Conflict(AdjudgeError):
    """Version conflict: reload the object and retry."""

    code = "CONFLICT"
    http_status = 409


class VersionConflict(Conflict):
    """The object was changed concurrently (version conflict): reload it and retry."""

    code = "VERSION_CONFLICT"


class NameTaken(Conflict):
    """That name is taken: choose another."""

    code = "NAME_TAKEN"


class ChainDisabled(Conflict):
    """The chain is disabled: enable it first."""

    code = "CHAIN_DISABLED"


class ChainFull(Conflict):
    """The chain has reached its limit of active runs: retry when one has finished, or stop one."""

    code = "CHAIN_FULL"


class TriggerDisabled(Conflict):
    """The trigger is disabled: enable it first."""

    code = "TRIGGER_DISABLED"


class WrongRunState(Conflict):
    """The run's status does not allow this operation: reload it."""

    code = "WRONG_RUN_STATE"


class WrongNodeState(Conflict):
    """The node's status does not allow this operation: reload it."""

    code = "WRONG_NODE_STATE"


class IdempotencyKeyReused(Conflict):
    """Idempotency key already used for a different request."""

    code = "IDEMPOTENCY_KEY_REUSED"


class RefusalReason(StrEnum):
    """Why a guarded write changed no row."""

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
    """This attempt no longer holds the job."""

    def __init__(self, job_id: str, reason: RefusalReason) -> None:
        self.reason = reason
        super().__init__(f"Job {job_id!r}: write rejected: {reason}.", job_id=job_id, reason=str(reason))


class BodyTooLarge(AdjudgeError):
    """Request body too large."""

    code = "BODY_TOO_LARGE"
    http_status = 413


class TooManyRequests(AdjudgeError):
    """Too many requests: retry later."""

    code = "TOO_MANY_REQUESTS"
    http_status = 429
    retryable = True


class RateLimited(TooManyRequests):
    """Rate limit exceeded: retry after the Retry-After time."""

    code = "RATE_LIMITED"


class QuotaExhausted(TooManyRequests):
    """Daily submission quota exceeded."""

    code = "QUOTA_EXHAUSTED"


class StorageFull(TooManyRequests):
    """Storage limit of your executions reached: wait until the oldest are deleted."""

    code = "STORAGE_FULL"


class InFlightCap(TooManyRequests):
    """Too many unfinished submissions: wait until some are judged."""

    code = "IN_FLIGHT_CAP"


class QueueFull(TooManyRequests):
    """Queue full: retry later."""

    code = "QUEUE_FULL"


class TooManyStreams(TooManyRequests):
    """Too many open event streams."""

    code = "TOO_MANY_STREAMS"


class Unavailable(AdjudgeError):
    """Service temporarily unavailable: retry."""

    code = "UNAVAILABLE"
    http_status = 503
    retryable = True


class NoWorkerForLanguage(Unavailable):
    """No live worker supports this language."""

    code = "NO_WORKER_FOR_LANGUAGE"


class JudgingPaused(Unavailable):
    """Judging is paused by an operator: of everything, or of this language. Submissions are accepted and wait."""

    code = "JUDGING_PAUSED"


class TimedOut(Unavailable):
    """Request timed out."""

    code = "TIMED_OUT"


class OutcomeUnknown(Unavailable):
    """Commit outcome unknown (connection lost during commit): check whether the object exists before retrying."""

    code = "OUTCOME_UNKNOWN"


class InternalFault(AdjudgeError):
    """Internal error."""

    code = "INTERNAL_FAULT"


class NodeFailed(InternalFault):
    """Node execution failed."""

    code = "NODE_FAILED"


class NodeRefused(Conflict):
    """The node failed permanently."""

    code = "NODE_REFUSED"
