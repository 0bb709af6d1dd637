"""Hints, never truth: messages that tell workers which jobs may be ready.

What belongs here: moving messages. What does not: deciding what a job is or whether it may run (``store``), and when to
publish or reclaim (``relay``, ``worker``).
"""

from adjudge.stream.driver import (
    Message,
    MessageBody,
    MessageDefect,
    PublishResult,
    Stream,
    consumer_name,
)
from adjudge.stream.memory import MemoryStream

__all__ = [
    "MemoryStream",
    "Message",
    "MessageBody",
    "MessageDefect",
    "PublishResult",
    "Stream",
    "consumer_name",
]
