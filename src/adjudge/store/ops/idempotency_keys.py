"""Idempotency keys: the same request with the same key gets the first one's answer.

A key is claimed in the transaction that does the work, with the answer already in it: whoever loses the race finds
the winner's answer, and nobody finds a key without one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.errors import IdempotencyKeyReused
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Statement

TTL_US: Final = 24 * 3600 * 1_000_000
"""How long an answer is given again."""

CLAIM = Statement(
    "idempotency_keys.claim",
    "Insert idempotency keys that do not exist yet, each with its response.",
    """
    INSERT INTO idempotency_keys (user_id, key, request_digest, response_status, response, created_at, expires_at)
    SELECT given_user_id, given_key, given_digest, given_status, given_response, {now}, {now} + :life_us
    FROM {given} WHERE true
    ON CONFLICT (user_id, key) DO UPDATE SET request_digest = excluded.request_digest,
        response_status = excluded.response_status, response = excluded.response,
        created_at = excluded.created_at, expires_at = excluded.expires_at
    WHERE idempotency_keys.expires_at <= {now}
    RETURNING user_id, key
    """,
    input_columns={
        "given_user_id": "text",
        "given_key": "text",
        "given_digest": "text",
        "given_status": "bigint",
        "given_response": "jsonb",
    },
)

FIND = Statement(
    "idempotency_keys.find",
    "Read the stored responses of idempotency keys.",
    """
    SELECT user_id, key, request_digest, response_status, response
    FROM {given} JOIN idempotency_keys ON user_id = given_user_id AND key = given_key
    WHERE expires_at > {now}
    """,
    input_columns={"given_user_id": "text", "given_key": "text"},
)

DELETE_EXPIRED = Statement(
    "idempotency_keys.delete_expired",
    "Delete expired idempotency keys.",
    """
    DELETE FROM idempotency_keys WHERE (user_id, key) IN (
        SELECT user_id, key FROM idempotency_keys WHERE expires_at <= {now} LIMIT :limit)
    """,
)


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A user's key."""

    user_id: str
    key: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What a request was answered with."""

    request_digest: str
    status: int
    response: Mapping[str, Any]

    def check_request(self, digest: str) -> StoredResponse:
        """Itself, for the request that it answered; any other request with the key is refused."""
        if digest != self.request_digest:
            raise IdempotencyKeyReused
        return self


async def claim(tx: Tx, answers: Mapping[IdempotencyKey, StoredResponse]) -> set[IdempotencyKey]:
    """Take keys; return those that were free."""
    rows = [
        (key.user_id, key.key, answer.request_digest, answer.status, json.dumps(answer.response))
        for key, answer in sorted(answers.items(), key=lambda item: (item[0].user_id, item[0].key))
    ]
    taken = await tx.fetch(CLAIM, rows, life_us=TTL_US) if rows else []
    return {IdempotencyKey(row["user_id"], row["key"]) for row in taken}


async def find(tx: Tx, keys: Sequence[IdempotencyKey]) -> dict[IdempotencyKey, StoredResponse]:
    """The answers that keys stand for."""
    rows = await tx.fetch(FIND, [(key.user_id, key.key) for key in dict.fromkeys(keys)]) if keys else []
    return {
        IdempotencyKey(row["user_id"], row["key"]): StoredResponse(
            row["request_digest"], row["response_status"], json.loads(row["response"])
        )
        for row in rows
    }


async def delete_expired(tx: Tx, *, limit: int = 500) -> int:
    """Remove keys whose time is over; return how many."""
    return await tx.execute(DELETE_EXPIRED, limit=limit)
