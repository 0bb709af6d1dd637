"""Evaluates records on a server: sends them in chunks, and yields the results as they end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.client import Client
from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.limits import MIB
from adjudge.evaluation.records import failed_result
from adjudge.evaluation.shapes import RecordShape, read_any, record_id

CHUNK_RECORDS: Final = 100
CHUNK_BYTES: Final = 8 * MIB
PENDING_RECORDS: Final = 1_000
"""Records that wait for their results on the server; more are sent when some have ended."""
_WAIT_SEC: Final = 20.0


@dataclass(slots=True)
class _Chunk:
    """Records of one request by id, and the results of invalid ones, which are not sent."""

    records: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    invalid: list[Mapping[str, Any]] = field(default_factory=list)
    size: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.records) + len(self.invalid) >= CHUNK_RECORDS or self.size >= CHUNK_BYTES


def evaluate_remotely(
    client: Client, name: str, records: Iterable[Mapping[str, Any]], shape: RecordShape | None
) -> Iterator[Mapping[str, Any]]:
    """Add the records to the evaluation ``name`` and yield the documents of their results."""
    chunks, is_sent = _chunks(records, shape), False
    pending: set[str] = set()
    evaluation_id, after = "", 0
    while not is_sent or pending:
        while not is_sent and len(pending) < PENDING_RECORDS:
            chunk = next(chunks, None)
            if chunk is None:
                is_sent = True
                break
            yield from chunk.invalid
            if chunk.records:
                evaluation_id = client.evaluate(name, chunk.records.values(), shape=shape).id
                pending.update(chunk.records)
        if not pending:
            continue
        found = client.evaluation_results(evaluation_id, after=after, wait_sec=_WAIT_SEC)
        for document in found:
            after = document["sequence"]
            if document["id"] in pending:
                pending.discard(document["id"])
                yield {key: value for key, value in document.items() if key != "sequence"}
        if not found and client.evaluation(evaluation_id).is_finished:
            raise Unavailable(f"The server has no result for {len(pending)} records; run the command again.")


def _chunks(records: Iterable[Mapping[str, Any]], shape: RecordShape | None) -> Iterator[_Chunk]:
    chunk = _Chunk()
    for document in records:
        found_id = record_id(document)
        try:
            read_any(document, shape)
        except InvalidInput as error:
            chunk.invalid.append(failed_result(found_id, error).document())
        else:
            chunk.records[found_id] = document
            chunk.size += len(json.dumps(document))
        if chunk.is_full:
            yield chunk
            chunk = _Chunk()
    if chunk.records or chunk.invalid:
        yield chunk
