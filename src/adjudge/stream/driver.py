"""The protocol of streams: two drivers, one conformance suite.

A message says that a job may be ready: it may come twice, late or not at all, and its reader checks the database. This
module has the protocol, its values, and the rules that both drivers share.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from adjudge.domain.errors import InvalidInput
from adjudge.domain.priority import band_of

MessageDefect = Literal["missing_field", "payload_missing_or_invalid"]
"""Why a message is unusable: a field is missing, or its payload is gone or invalid."""

_CONSUMER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@dataclass(frozen=True, slots=True)
class MessageBody:
    """What a message says about a job: identifiers only, never source code, logs, tokens or personal data."""

    job_id: str
    priority: int
    kind: str
    trace_id: str | None = None
    payload: Mapping[str, str | int | None] = field(default_factory=dict)

    @property
    def band(self) -> int:
        """The priority band, which selects the stream."""
        return band_of(self.priority)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result for one message: its entry id, or the reason why it was not published."""

    job_id: str
    entry_id: str | None
    error: str | None = None
    is_final: bool = False
    """Whether the message itself was rejected, so that a retry cannot help."""
    is_outage: bool = False
    """Whether the stream failed, not the message: it can be published later."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a worker reads. Either ``body`` or ``defect`` is set; ``job_id`` may be known in both cases."""

    entry_id: str
    band: int
    body: MessageBody | None
    defect: MessageDefect | None
    job_id: str | None
    delivery_count: int
    """Number of deliveries to consumers, including this one."""
    enqueued_at_ms: int | None = None
    """When it was published, by the publisher's clock."""
    payload_ref: str | None = None
    """For the driver: what it must delete when the message is acknowledged."""


class Stream(Protocol):
    """Messages in priority bands, read by a consumer group; a message is pending until it is acknowledged.

    Every method raises ``Unavailable`` while the stream is down and works again when it is back.
    """

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        """Publish messages in one round trip; an invalid one does not affect the others."""
        ...

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        """Read new messages, higher bands first, without starving lower ones.

        Returns as soon as there is a message, or empty after ``wait_ms``. Cancelling it loses no message.
        """
        ...

    async def ack(self, messages: Sequence[Message]) -> int:
        """Acknowledge messages; returns how many were still pending."""
        ...

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        """Claim messages that have been pending with other consumers for ``idle_ms``.

        Scans a part of the pending messages per call and continues there at the next call.
        """
        ...

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        """Of these (priority, entry_id), those whose message still exists, unread or unacknowledged.

        One round trip; the reconciler publishes the others again. Acknowledged messages are deleted.
        """
        ...

    async def pending_counts(self) -> dict[int, int]:
        """Messages per band that were read and not acknowledged."""
        ...

    async def depths(self) -> dict[int, int]:
        """Messages per band that are not acknowledged, read or not."""
        ...

    async def close(self) -> None:
        """Disconnect; published messages are kept."""
        ...


def consumer_name(stream_consumer: str | None = None, worker_id: str | None = None) -> str:
    """The consumer name: ``JOB_STREAM_CONSUMER``, else ``WORKER_ID``, else ``hostname-pid``."""
    for variable, given in (("JOB_STREAM_CONSUMER", stream_consumer), ("WORKER_ID", worker_id)):
        if given:
            if not _CONSUMER.fullmatch(given):
                raise InvalidInput(
                    f"{variable}: {given[:64]!r} cannot name a consumer; use letters, digits and . _ : @ -, "
                    "at most 128 characters, the first a letter or a digit.",
                    field=variable,
                )
            return given
    return f"{socket.gethostname()}-{os.getpid()}"
