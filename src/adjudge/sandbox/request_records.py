"""Encodes the records of a launcher request.

``launcher/request.h`` describes the format. Records with descriptors are built in ``request_packet``.
"""

from __future__ import annotations

import struct
from dataclasses import fields
from enum import IntEnum
from operator import attrgetter
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import Limits

U32: Final = struct.Struct("<I")
_RECORD: Final = struct.Struct("<HHI")
_U64: Final = struct.Struct("<Q")
_LIMIT_NAMES: Final = tuple(field.name for field in fields(Limits))
_LIMITS: Final = struct.Struct(f"<{len(_LIMIT_NAMES)}Q")
_limit_values: Final = attrgetter(*_LIMIT_NAMES)


class RecordTag(IntEnum):
    """Type of a record."""

    JOB_ID = 1
    ATTEMPT_ID = 2
    LIMITS = 3
    ARGUMENT = 4
    VARIABLE = 5
    STDIN = 6
    STDOUT = 7
    STDERR = 8
    FILE_COPY = 9
    FILE_INLINE = 10
    FILE_BIND = 11
    MOUNT = 12
    COLLECT = 13
    COLLECT_TO = 14
    EGRESS = 15


def encode_record(tag: RecordTag, payload: bytes) -> bytes:
    return _RECORD.pack(tag, 0, len(payload)) + payload


def encode_os_text(text: str) -> bytes:
    """Encode text for the kernel; names that are not UTF-8 are restored by surrogateescape."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text[:40]!r}: unpaired surrogate; cannot be passed to a program.") from error


def encode_identity(job_id: str, attempt_id: int) -> bytes:
    return encode_record(RecordTag.JOB_ID, job_id.encode() + b"\0") + encode_record(
        RecordTag.ATTEMPT_ID, _U64.pack(attempt_id)
    )


def encode_limits(limits: Limits) -> bytes:
    """Encode the limits in the order of their declaration."""
    try:
        return encode_record(RecordTag.LIMITS, _LIMITS.pack(*_limit_values(limits)))
    except struct.error as error:
        raise InvalidInput(f"limits: {limits}: a value is out of range.", field="limits") from error
