"""Structured logs on standard error: one event per line, as JSON or for a person's eye.

Ids (``request_id``, ``job_id``, ``attempt_id``, ``trace_id``) travel as context: whoever starts a unit of work binds
them once with :func:`context`, everything logged inside carries them. Secrets never reach a line: keys that name one
are blanked here, whatever the caller passed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final, Literal, TextIO

import structlog

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]

REDACTED: Final = "[redacted]"
_SECRET_WORDS: Final = ("password", "secret", "token", "authorization", "cookie", "api_key", "source_code")
_LIBRARIES: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi", "asyncio", "alembic")


_BEFORE: Final[list[structlog.types.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure(level: Level = "info", log_format: Format = "console", stream: TextIO | None = None) -> None:
    """Set logging up for the whole process; libraries' own records take the same road."""
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_BEFORE, redact],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(log_format, target)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True
        library.setLevel(logging.WARNING if level == "info" else logging.NOTSET)  # their progress is not our news


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Give a module its logger, named as the module is."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


@contextmanager
def context(**fields: object) -> Iterator[None]:
    """Carry ``fields`` on every line logged inside, in this task and in those it starts."""
    with structlog.contextvars.bound_contextvars(**fields):
        yield


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank every value whose key names a secret."""
    for key in event:
        if key != "event" and any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = REDACTED
    return event


def _renderers(log_format: Format, target: TextIO) -> list[structlog.types.Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=True)]
    return [structlog.dev.ConsoleRenderer(colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback)]


# At import, because a library that was never configured must not print to a caller's standard output.
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_BEFORE,
        redact,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=False,
)
