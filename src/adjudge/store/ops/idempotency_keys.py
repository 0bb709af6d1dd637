"""Idempotency keys: a repeated request with the same key gets the response of the first one.

A key is inserted with its response in the transaction that does the work. So the loser of a race finds the response of
the winner, and there is no key without a response.
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
"""Retention of stored responses."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A user's key."""

    user_id: str
    key: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response to the first request with a key."""

    request_digest: str
    status: int
    response: Mapping[str, Any]

    def check_request(self, digest: str) -> StoredResponse:
        """Return itself if it belongs to the same request; reject another request with the same key."""
        if digest != self.request_digest:
            raise IdempotencyKeyReused
        return self


@dataclass(frozen=True, slots=True)
class KeyWithResponse:
    """A key and its stored response."""

    key: IdempotencyKey
    response: StoredResponse


CLAIM = Statement(
    "idempotency_keys.claim",
    "Insert idempotency keys that do not exist yet, each with its response.",
    """
    INSERT INTO idempotency_keys (user_id, key, request_digest, response_status, response, created_at, expires_at)
    SELECT given_user_id, given_key, given_digest, given_status, given_response, {now}, {now} + :ttl_us
    FROM {given} WHERE true
    ON CONFLICT (user_id, key) DO UPDATE SET request_digest = excluded.request_digest,
        response_status = excluded.response_status, response = excluded.response,
        created_at = excluded.created_at, expires_at = excluded.expires_at
    WHERE idempotency_keys.expires_at <= {now}
    RETURNING {columns}
    """,
    input_columns={
        "given_user_id": "text",
        "given_key": "text",
        "given_digest": "text",
        "given_status": "bigint",
        "given_response": "jsonb",
    },
    row=IdempotencyKey,
)

FIND = Statement(
    "idempotency_keys.find",
    "Read the stored responses of idempotency keys.",
    """
    SELECT {columns} FROM {given} JOIN idempotency_keys ON user_id = given_user_id AND key = given_key
    WHERE expires_at > {now}
    """,
    input_columns={"given_user_id": "text", "given_key": "text"},
    row=KeyWithResponse,
    columns={"status": "response_status"},
)

DELETE_EXPIRED = Statement(
    "idempotency_keys.delete_expired",
    "Delete expired idempotency keys.",
    """
    DELETE FROM idempotency_keys WHERE (user_id, key) IN (
        SELECT user_id, key FROM idempotency_keys WHERE expires_at <= {now} LIMIT :limit)
    """,
)


async def claim(tx: Tx, answers: Mapping[IdempotencyKey, StoredResponse]) -> set[IdempotencyKey]:
    """Insert keys with their responses; return the keys that did not exist."""
    rows = [
        (key.user_id, key.key, answer.request_digest, answer.status, json.dumps(answer.response))
        for key, answer in sorted(answers.items(), key=lambda item: (item[0].user_id, item[0].key))
    ]
    return {*await tx.fetch(CLAIM, rows, ttl_us=TTL_US)} if rows else set()


async def find(tx: Tx, keys: Sequence[IdempotencyKey]) -> dict[IdempotencyKey, StoredResponse]:
    rows = await tx.fetch(FIND, [(key.user_id, key.key) for key in dict.fromkeys(keys)]) if keys else []
    return {row.key: row.response for row in rows}


async def delete_expired(tx: Tx, *, limit: int = 500) -> int:
    """Delete expired keys; return their number."""
    return await tx.execute(DELETE_EXPIRED, limit=limit)
