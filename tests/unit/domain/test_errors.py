"""The tree of errors: stable codes, docstrings as messages."""

from __future__ import annotations

import inspect

import pytest

from adjudge.domain import errors
from adjudge.domain.errors import AdjudgeError, FenceRefused, NotFound, RefusalReason, TooManyRequests, Unavailable

CLASSES = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, AdjudgeError)]
STABLE = {
    "AdjudgeError": ("ERROR", 500),
    "InvalidInput": ("INVALID_INPUT", 400),
    "InvalidStatus": ("INVALID_STATUS", 400),
    "InvalidTransition": ("INVALID_TRANSITION", 400),
    "ChainNameTaken": ("CHAIN_NAME_TAKEN", 400),
    "BackupDamaged": ("BACKUP_DAMAGED", 400),
    "Unauthenticated": ("UNAUTHENTICATED", 401),
    "LoginFailed": ("LOGIN_FAILED", 401),
    "Forbidden": ("FORBIDDEN", 403),
    "CsrfRefused": ("CSRF_REFUSED", 403),
    "PasswordChangeRequired": ("PASSWORD_CHANGE_REQUIRED", 403),
    "ReauthenticationRequired": ("REAUTHENTICATION_REQUIRED", 403),
    "NotFound": ("ERROR", 404),
    "Conflict": ("CONFLICT", 409),
    "VersionConflict": ("VERSION_CONFLICT", 409),
    "NameTaken": ("NAME_TAKEN", 409),
    "ChainDisabled": ("CHAIN_DISABLED", 409),
    "ChainFull": ("CHAIN_FULL", 409),
    "TriggerDisabled": ("TRIGGER_DISABLED", 409),
    "WrongRunState": ("WRONG_RUN_STATE", 409),
    "WrongNodeState": ("WRONG_NODE_STATE", 409),
    "IdempotencyKeyReused": ("IDEMPOTENCY_KEY_REUSED", 409),
    "FenceRefused": ("CONFLICT", 409),
    "NodeRefused": ("NODE_REFUSED", 409),
    "BodyTooLarge": ("BODY_TOO_LARGE", 413),
    "TooManyRequests": ("TOO_MANY_REQUESTS", 429),
    "RateLimited": ("RATE_LIMITED", 429),
    "QuotaExhausted": ("QUOTA_EXHAUSTED", 429),
    "StorageFull": ("STORAGE_FULL", 429),
    "InFlightCap": ("IN_FLIGHT_CAP", 429),
    "QueueFull": ("QUEUE_FULL", 429),
    "TooManyStreams": ("TOO_MANY_STREAMS", 429),
    "Unavailable": ("UNAVAILABLE", 503),
    "JudgingPaused": ("JUDGING_PAUSED", 503),
    "NoWorkerForLanguage": ("NO_WORKER_FOR_LANGUAGE", 503),
    "TimedOut": ("TIMED_OUT", 503),
    "OutcomeUnknown": ("OUTCOME_UNKNOWN", 503),
    "InternalFault": ("INTERNAL_FAULT", 500),
    "NodeFailed": ("NODE_FAILED", 500),
}


def test_error_codes_and_statuses_are_stable() -> None:
    assert {item.__name__: (item.code, item.http_status) for item in CLASSES} == STABLE


@pytest.mark.parametrize("kind", [item for item in CLASSES if item not in (NotFound, FenceRefused)])
def test_docstring_is_default_message(kind: type[AdjudgeError]) -> None:
    error = kind()
    assert str(error) == error.message == (kind.__doc__ or "").splitlines()[0]
    assert str(kind("Something else.", field="x")) == "Something else."
    assert kind(field="x").fields == {"field": "x"}


def test_not_found_code_contains_kind() -> None:
    error = NotFound("judge_run", "42")
    assert (error.code, str(error)) == ("JUDGE_RUN_NOT_FOUND", "Not found: judge run '42'.")
    assert error.fields == {"kind": "judge_run", "id": "42"}


def test_fence_refused_has_reason() -> None:
    error = FenceRefused("42", RefusalReason.STALE_ATTEMPT)
    assert error.fields == {"job_id": "42", "reason": "stale_attempt"}
    assert "stale_attempt" in str(error)


def test_retryable_errors() -> None:
    assert {item for item in CLASSES if item.retryable} == {
        item for item in CLASSES if issubclass(item, (Unavailable, TooManyRequests))
    }


def test_error_tree_lists_every_class() -> None:
    for item in CLASSES:
        assert item.__name__ in (errors.__doc__ or "")
