"""Structured logs on standard error: one event per line, as JSON or readable text.

Ids (``request_id``, ``job_id``, ``attempt_id``, ``trace_id``) are context: the code that starts a unit of work binds
them once with :func:`context`, and everything logged inside has them. Values of keys that name a secret are redacted
here, whatever the caller passed. Repeated lines of one job are limited, and the number of omitted lines is logged.

A job writes several lines, so a line must be cheap: our own are rendered here and written directly (docs/adr/0075).
Records of libraries come through ``logging`` and look the same.
"""

from __future__ import annotations

import json
import logging
import select
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, TextIO

from adjudge.observe.log_limits import JobLineLimiter

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]
Fields = Mapping[str, object]

REDACTED: Final = "[redacted]"
_SECRET_WORDS: Final = ("password", "secret", "token", "authorization", "cookie", "api_key", "source_code")
_LIBRARIES: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi", "asyncio", "alembic")
_URL_LOGGING_LIBRARIES: Final = ("httpx", "httpcore")
"""Libraries that log every URL they request, which may contain a key: only their warnings are logged."""
_LEVELS: Final[dict[Level, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_COLOURS: Final = {"debug": "\033[2m", "info": "\033[32m", "warning": "\033[33m", "error": "\033[31m"}
_PLAIN: Final = "\033[0m"


class _LogOutput:
    """Level, stream and renderer, set by :func:`configure` and read for every line."""

    def __init__(self) -> None:
        self.least = logging.WARNING
        self.stream: TextIO | None = None
        self.render: Callable[[Fields, str], str] = _as_text
        self.limiter = JobLineLimiter()

    def write(self, line: str) -> None:
        stream = self.stream or sys.stderr
        stream.write(line)
        stream.flush()

    def write_all(self, lines: Iterable[str]) -> None:
        """Write many lines by few calls, none larger than PIPE_BUF: other processes may write to the same pipe."""
        together, size = "", 0
        for line in lines:
            size += len(line.encode(errors="replace"))
            if together and size > select.PIPE_BUF:
                self.write(together)
                together, size = "", len(line.encode(errors="replace"))
            together += line
        if together:
            self.write(together)


class Logger:
    """Logs events with fields."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, /, **fields: object) -> None:
        if _output.least <= logging.DEBUG:
            self._write("debug", event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        if _output.least <= logging.INFO:
            self._write("info", event, fields)

    def info_many(self, event: str, each: Iterable[Fields], /) -> None:
        """One line for each item of a batch."""
        if _output.least <= logging.INFO:
            _report_left_out()
            head = _head("info", event, self._name)
            _output.write_all(_line(head, fields) for fields in each if _is_within_limit(event, fields))

    def warning(self, event: str, /, **fields: object) -> None:
        if _output.least <= logging.WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        self._write("error", event, fields)

    def exception(self, event: str, /, **fields: object) -> None:
        """An error, with the exception that is being handled."""
        self._write("error", event, {"exc_info": True, **fields})

    def _write(self, level: str, event: str, fields: Fields) -> None:
        _report_left_out()
        if _is_within_limit(event, fields):
            _output.write(_line(_head(level, event, self._name), fields))


def configure(level: Level = "info", log_format: Format = "console", stream: TextIO | None = None) -> None:
    """Configure logging for the whole process, including libraries."""
    _output.least, _output.stream = _LEVELS[level], stream
    is_terminal = (stream or sys.stderr).isatty()
    _output.render = _as_json if log_format == "json" else _as_colored_text if is_terminal else _as_text
    _output.limiter = JobLineLimiter()
    logging.getLogger().handlers = [_Libraries()]
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True
    for name in _URL_LOGGING_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    _set_library_levels(level)


def _set_library_levels(level: Level) -> None:
    logging.getLogger().setLevel(level.upper())
    for name in _LIBRARIES:  # their info records are not relevant here
        logging.getLogger(name).setLevel(logging.WARNING if level == "info" else logging.NOTSET)


def set_level(level: Level) -> Level:
    """Change the level of the process; returns the previous one."""
    before = next(name for name, number in _LEVELS.items() if number == _output.least)
    _output.least = _LEVELS[level]
    _set_library_levels(level)
    return before


def get_logger(name: str) -> Logger:
    return Logger(name)


class context:  # noqa: N801 — it reads as what it is: ``with context(job_id=…):``
    """Add ``fields`` to every line logged inside, in this task and in tasks it starts."""

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _context.set({**_context.get(), **self._fields})

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):  # a dropped task is closed by the garbage collector, outside its context
            _context.reset(self._token)


class _Libraries(logging.Handler):
    """Handler for records of libraries."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record in our format."""
        level = next((name for name, number in reversed(_LEVELS.items()) if record.levelno >= number), "debug")
        raised = record.exc_info[1] if record.exc_info else None
        fields: Fields = {} if raised is None else {"exc_info": raised}
        try:
            _output.write(_line(_head(level, record.getMessage(), record.name), fields))
        except Exception:  # noqa: BLE001 — a library's record that cannot be written must not fail the library
            self.handleError(record)


def _is_within_limit(event: str, fields: Fields) -> bool:
    """Whether a line may be written: a line about a job, unless there were too many of the same event."""
    job_id = fields.get("job_id") or _context.get().get("job_id")
    return job_id is None or _output.limiter.allows(event, job_id)


def _report_left_out() -> None:
    for item in _output.limiter.take_left_out():
        head = _head("warning", "log_lines_omitted", __name__)
        fields = {"job_id": item.job_id, "omitted_event": item.event, "omitted_lines": item.lines}
        _output.write(_line(head, fields))


def _head(level: str, event: str, logger: str) -> Fields:
    """The fields that every line starts with."""
    timestamp = datetime.now(UTC).isoformat()[:-6] + "Z"
    return {"timestamp": timestamp, "level": level, "event": event, "logger": logger, **_context.get()}


def _line(head: Fields, fields: Fields) -> str:
    line = {**head, **fields}
    for key in _secrets_among(tuple(line)):
        line[key] = REDACTED
    return _output.render(line, _trace(line.pop("exc_info"))) if "exc_info" in line else _output.render(line, "")


@lru_cache(maxsize=1024)
def _secrets_among(keys: tuple[str, ...]) -> list[str]:
    """Keys that name a secret; cached, because the same sets of keys recur."""
    return [key for key in keys if any(word in key.lower() for word in _SECRET_WORDS)]


def _trace(exc_info: object) -> str:
    """The traceback of an exception, or with ``True`` of the one being handled."""
    raised = exc_info if isinstance(exc_info, BaseException) else sys.exc_info()[1] if exc_info else None
    return "" if raised is None else "".join(traceback.format_exception(raised)).rstrip()


def _as_json(fields: Fields, trace: str) -> str:
    return _encode({**fields, "exception": trace} if trace else fields) + "\n"


def _as_text(fields: Fields, trace: str) -> str:
    timestamp, level, event, logger, *rest = fields.items()
    shown = "".join([f" {key}={_shown(value)}" for key, value in rest])
    return f"{timestamp[1]} [{level[1]:<7}] {event[1]!s:<24} [{logger[1]}]{shown}\n" + (f"{trace}\n" if trace else "")


def _as_colored_text(fields: Fields, trace: str) -> str:
    level = str(fields["level"])
    return _as_text(fields, trace).replace(f"[{level}", f"[{_COLOURS[level]}{level}{_PLAIN}", 1)


def _shown(value: object) -> object:
    """A value in console format: strings with spaces or special characters are quoted."""
    if type(value) is str:
        return value if value.isprintable() and " " not in value else repr(value)
    return value if type(value) is int else repr(value)


_encode: Final = json.JSONEncoder(default=repr).encode
"""Created once: ``json.dumps`` creates an encoder for every call with options."""
_context: Final[ContextVar[Fields]] = ContextVar("log_context", default={})  # noqa: B039 — nobody changes it in place
_output: Final = _LogOutput()
