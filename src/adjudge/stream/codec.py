"""The encoding of messages in Redis: the four fields of an entry, and the envelope at its ``payload_ref``.

The envelope is JSON: ``schema_version``, ``content_type`` and, under ``data``, identifiers. Values that cannot be
identifiers are rejected here, so that no source code or personal data gets into Redis.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from adjudge.domain.errors import InvalidInput
from adjudge.stream.driver import Message, MessageBody, MessageDefect

SCHEMA_VERSION: Final = 1
CONTENT_TYPE: Final = "application/json"
_MAX_CHARACTERS: Final = 256
_MAX_KEYS: Final = 32
_write: Final = json.JSONEncoder(separators=(",", ":")).encode
"""Created once: ``json.dumps`` creates an encoder for every call with options."""


def check_identifiers_only(hint: MessageBody) -> MessageBody:
    _identifier("job_id", hint.job_id)
    _identifier("kind", hint.kind)
    if type(hint.priority) is not int:
        raise InvalidInput("priority: must be an integer.", field="priority")
    if hint.trace_id is not None:
        _identifier("trace_id", hint.trace_id)
    if len(hint.payload) > _MAX_KEYS:
        raise InvalidInput(f"payload: {len(hint.payload)} values exceed the limit of {_MAX_KEYS}.", field="payload")
    for key, value in hint.payload.items():
        _identifier("payload", key)
        if value is not None and type(value) is not int:
            _identifier(f"payload.{key}", value)
    return hint


def encode(hint: MessageBody) -> str:
    """Encode the envelope of a checked message body."""
    data = {"job_id": hint.job_id, "kind": hint.kind, "trace_id": hint.trace_id, "ids": dict(hint.payload)}
    envelope = {"schema_version": SCHEMA_VERSION, "content_type": CONTENT_TYPE, "data": data}
    return _write(envelope)


def decode(entry_id: str, band: int, fields: Mapping[str, str], payload: str | None, *, deliveries: int = 1) -> Message:
    """Decode an entry into a message, or into one with the reason why it is unusable."""
    job_id, enqueued_at_ms = fields.get("job_id") or None, _number(fields.get("enqueue_ts"))
    hint, problem = _usable(job_id, enqueued_at_ms, fields, payload)
    return Message(
        entry_id, band, hint, problem, job_id, deliveries, enqueued_at_ms, payload_ref=fields.get("payload_ref") or None
    )


def _usable(
    job_id: str | None, enqueued_at_ms: int | None, fields: Mapping[str, str], payload: str | None
) -> tuple[MessageBody | None, MessageDefect | None]:
    """The message body of an entry, or its defect."""
    priority = _number(fields.get("priority"))
    if job_id is None or priority is None or enqueued_at_ms is None or not fields.get("payload_ref"):
        return None, "missing_field"
    try:
        hint = check_identifiers_only(_hint(payload, priority))
        if hint.job_id != job_id:
            raise ValueError("the payload is another job's")
    except (ValueError, TypeError, KeyError, AttributeError, InvalidInput):
        return None, "payload_missing_or_invalid"
    return hint, None


def _hint(payload: str | None, priority: int) -> MessageBody:
    envelope: dict[str, Any] = json.loads(payload or "")
    if envelope["schema_version"] != SCHEMA_VERSION or envelope["content_type"] != CONTENT_TYPE:
        raise ValueError("an envelope of another version")
    data = envelope["data"]
    return MessageBody(data["job_id"], priority, data["kind"], data["trace_id"], dict(data["ids"]))


def _identifier(field: str, value: object) -> None:
    """Reject everything that is not one short line; the value is not repeated, because it may be a secret."""
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_CHARACTERS or not value.isprintable():
        raise InvalidInput(
            f"{field}: must be 1 to {_MAX_CHARACTERS} printable characters (messages carry identifiers only).",
            field=field,
        )


def _number(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.lstrip("-").isdigit():
        return None
    return int(text)
