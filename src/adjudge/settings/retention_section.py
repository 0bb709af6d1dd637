"""The section ``retention``."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.settings.setting import declare as _setting


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long history is kept. Executions, webhook deliveries and chain runs have settings in their own sections."""

    history_days: float = _setting(
        90.0,
        "Retention in days of the attempts and status changes of finished jobs whose submission is kept; 0: unlimited.",
        "RETENTION_HISTORY_DAYS",
        minimum=0,
    )
    audit_days: float = _setting(
        1095.0, "Retention of the audit log in days; 0: unlimited.", "RETENTION_AUDIT_DAYS", minimum=0
    )
    imports_days: float = _setting(
        90.0,
        "Retention in days of finished imports and verifications, except the last ones of a revision; 0: unlimited.",
        "RETENTION_IMPORTS_DAYS",
        minimum=0,
    )
    tokens_days: float = _setting(
        90.0, "Retention of expired and revoked API tokens in days; 0: unlimited.", "RETENTION_TOKENS_DAYS", minimum=0
    )
    dead_letters_days: float = _setting(
        365.0,
        "Retention of replayed and discarded dead letters in days; 0: unlimited.",
        "RETENTION_DEAD_LETTERS_DAYS",
        minimum=0,
    )
