"""The stream: messages that tell workers which jobs may be ready; never the source of truth.

``store`` decides what a job is and whether it may run; ``relay`` and ``worker`` decide when to publish and reclaim.
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
