"""Ids of the Contest API: at most 36 characters, chosen by people where they can be.

A contest is its slug, a problem its label, a team, group or organisation its code, a submission or clarification its
number in the contest, and a judgement its judge job. Ids of awards contain ids of problems and groups, so these must be
short: UUIDs would make them longer than the specification allows.
"""

from __future__ import annotations

import hashlib
from typing import Final

MAX_ID: Final = 36
_DIGEST_CHARS: Final = 8
_UUID_DIGITS: Final = 32


def award_id(prefix: str, object_id: str) -> str:
    """The id of an award for an object; one that is too long ends with a digest instead."""
    whole = f"{prefix}{object_id}"
    if len(whole) <= MAX_ID:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{whole[: MAX_ID - _DIGEST_CHARS - 1].rstrip('.-')}-{digest}"


def run_id(judgement_id: str, ordinal: int) -> str:
    """The id of a run: the digits of the judge job, and the ordinal of the test as four more."""
    return f"{judgement_id.replace('-', '')}{ordinal:04x}"


def judgement_of_run(text: str) -> str | None:
    """The judgement that a run belongs to; None if it is not the id of a run."""
    digits = text[:_UUID_DIGITS]
    if len(text) != MAX_ID or not all(letter in "0123456789abcdef" for letter in text):
        return None
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def parse_number(text: str) -> int | None:
    """The number of a submission or clarification; None if the id is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if is_number and text == str(int(text)) else None
