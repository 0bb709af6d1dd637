"""What the drive asks of a stream: one protocol, two drivers, one conformance suite.

A message is a hint that a job's row may be ready, never the truth: it may come twice, late, or not at all, and whoever
reads it asks the database. What belongs here: the protocol, the values that pass through it, and the rules both drivers
share (bands, names). What does not: how a driver keeps messages, and what a worker makes of one.
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
"""Why a message cannot be used: a field of the entry is absent, or its payload is gone or unreadable."""

_CONSUMER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@dataclass(frozen=True, slots=True)
class MessageBody:
    """What the relay tells of a job: identifiers only, never source, logs, tokens or personal data."""

    job_id: str
    priority: int
    kind: str
    trace_id: str | None = None
    payload: Mapping[str, str | int | None] = field(default_factory=dict)

    @property
    def band(self) -> int:
        """The stream that it goes to."""
        return band_of(self.priority)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """What became of one hint: an entry in the stream, or the reason why there is none."""

    job_id: str
    entry_id: str | None
    error: str | None = None
    is_final: bool = False
    """Whether the hint itself was refused, so that trying again cannot help."""
    is_outage: bool = False
    """Whether the stream is at fault rather than the hint: the same hint can be published later."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a worker reads. Either ``hint`` or ``problem`` is set; the job may be known even of an unusable one."""

    entry_id: str
    band: int
    body: MessageBody | None
    defect: MessageDefect | None
    job_id: str | None
    delivery_count: int
    """How often it has been handed to a consumer, this time included."""
    enqueued_at_ms: int | None = None
    """When it was published, by the publisher's clock."""
    payload_ref: str | None = None
    """The driver's own: what it must clean up when the message is acknowledged."""


class Stream(Protocol):
    """Messages in bands, read by a group of consumers, each message pending until it is acknowledged.

    Every method raises ``Unavailable`` while the stream is away and works again by itself when it is back.
    """

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        """Add a message for each hint, in one round trip; one bad hint never fails its neighbours."""
        ...

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        """Take new messages, higher bands first and lower ones never starved.

        Returns as soon as there is anything, and with nothing after ``wait_ms``. Cancelling it loses no message.
        """
        ...

    async def ack(self, messages: Sequence[Message]) -> int:
        """Forget messages that are dealt with; return how many of them were still pending."""
        ...

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        """Take over messages that their readers have kept for ``idle_ms``.

        Looks at a part of the pending messages at a time and goes on from there at the next call.
        """
        ...

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        """Of these (priority, entry_id), return those whose message is still here, unread or unacknowledged.

        One round trip; the reconciler delivers the others again. An acknowledged message is deleted, so it is not held.
        """
        ...

    async def pending_counts(self) -> dict[int, int]:
        """How many messages of each band are read and not acknowledged."""
        ...

    async def depths(self) -> dict[int, int]:
        """How many messages of each band are not acknowledged, read or not."""
        ...

    async def close(self) -> None:
        """Let go of the stream; nothing that was published is lost by it."""
        ...


def consumer_name(stream_consumer: str | None = None, worker_id: str | None = None) -> str:
    """Name a reader: ``JOB_STREAM_CONSUMER``, else ``WORKER_ID``, else ``hostname-pid``."""
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
