"""Structured logs on standard error: one event per line, as JSON or for a person's eye.

Ids (``request_id``, ``job_id``, ``attempt_id``, ``trace_id``) travel as context: whoever starts a unit of work binds
them once with :func:`context`, everything logged inside carries them. Secrets never reach a line: keys that name one
are blanked here, whatever the caller passed.

A line of ours goes straight to its stream, without the standard library's records in between: a job has several lines,
and they must not cost more than the job. Libraries' own records are rendered alike.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final, Literal, TextIO

import structlog

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]

REDACTED: Final = "[redacted]"
_SECRET_WORDS: Final = ("password", "secret", "token", "authorization", "cookie", "api_key", "source_code")
_LIBRARIES: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi", "asyncio", "alembic")
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}


class _Road:
    """Where lines go and how they look: what :func:`configure` sets, looked at with every line."""

    def __init__(self) -> None:
        self.least = logging.WARNING
        self.stream: TextIO | None = None
        self.render: list[structlog.types.Processor] = _renderers("console", sys.stderr)

    def write(self, text: str) -> None:
        (self.stream or sys.stderr).write(text)

    def flush(self) -> None:
        (self.stream or sys.stderr).flush()


def configure(level: Level = "info", log_format: Format = "console", stream: TextIO | None = None) -> None:
    """Set logging up for the whole process; libraries' own records look the same."""
    target = stream or sys.stderr
    _road.least, _road.stream, _road.render = _LEVELS[level], stream, _renderers(log_format, target)
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                _stamp,
                redact,
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_road.render],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True
        library.setLevel(logging.WARNING if level == "info" else logging.NOTSET)  # their progress is not our news


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """Give a module its logger, named as the module is."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(logger=name)
    return logger


@contextmanager
def context(**fields: object) -> Iterator[None]:
    """Carry ``fields`` on every line logged inside, in this task and in those it starts."""
    tokens = structlog.contextvars.bind_contextvars(**fields)
    try:
        yield
    finally:
        with suppress(ValueError):  # a task that was dropped is taken down by the collector, outside of its context
            structlog.contextvars.reset_contextvars(**tokens)


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank every value whose key names a secret."""
    for key in event:
        if _names_secret(key):
            event[key] = REDACTED
    return event


@lru_cache(maxsize=1024)
def _names_secret(key: str) -> bool:
    return key != "event" and any(word in key.lower() for word in _SECRET_WORDS)


def _drop_quiet(_logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if _LEVELS[method] < _road.least:
        raise structlog.DropEvent
    return event


def _render(logger: object, method: str, event: MutableMapping[str, Any]) -> Any:
    rendered: Any = event
    for step in _road.render:
        rendered = step(logger, method, rendered)
    return rendered


def _as_json(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    return _encode(event)


def _renderers(log_format: Format, target: TextIO) -> list[structlog.types.Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, _as_json]
    return [structlog.dev.ConsoleRenderer(colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback)]


_encode: Final = json.JSONEncoder(default=repr).encode
"""Made once: the library's own way makes one for every line."""
_stamp: Final = structlog.processors.TimeStamper(fmt="iso", utc=True)
_road: Final = _Road()

# At import, because a library that was never configured must not print to a caller's standard output.
structlog.configure(
    processors=[
        _drop_quiet,
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp,
        redact,
        _render,
    ],
    logger_factory=structlog.WriteLoggerFactory(_road),  # type: ignore[arg-type]  # it writes and flushes, which is all that is asked of it
    wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
)
