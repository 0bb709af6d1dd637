"""Structured logs on standard error: one event per line, as JSON or for a person's eye.

Ids (``request_id``, ``job_id``, ``attempt_id``, ``trace_id``) travel as context: whoever starts a unit of work binds
them once with :func:`context`, everything logged inside carries them. Secrets never reach a line: keys that name one
are blanked here, whatever the caller passed.

A job has several lines, and they must not cost more than the job. So a line of ours is put together here and goes
straight to its stream; libraries' own records, of which there are few, come by way of ``logging`` and look alike.
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

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]
Fields = Mapping[str, object]

REDACTED: Final = "[redacted]"
_SECRET_WORDS: Final = ("password", "secret", "token", "authorization", "cookie", "api_key", "source_code")
_LIBRARIES: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi", "asyncio", "alembic")
_TELLTALES: Final = ("httpx", "httpcore")
"""Libraries that log every address they ask, which may hold a key: nothing but their warnings is let through."""
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_COLOURS: Final = {"debug": "\033[2m", "info": "\033[32m", "warning": "\033[33m", "error": "\033[31m"}
_PLAIN: Final = "\033[0m"


class _LogOutput:
    """Where lines go and how they look: what :func:`configure` sets, looked at with every line."""

    def __init__(self) -> None:
        self.least = logging.WARNING
        self.stream: TextIO | None = None
        self.render: Callable[[Fields, str], str] = _for_eyes

    def write(self, line: str) -> None:
        stream = self.stream or sys.stderr
        stream.write(line)
        stream.flush()

    def write_all(self, lines: Iterable[str]) -> None:
        """Write many lines by few calls, none larger than a pipe takes whole: others may write to it as well."""
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
    """Says what happened: an event's name and its fields."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, /, **fields: object) -> None:
        """Something for whoever looks for a fault."""
        if _road.least <= logging.DEBUG:
            self._say("debug", event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Something that goes its ordinary way."""
        if _road.least <= logging.INFO:
            self._say("info", event, fields)

    def info_many(self, event: str, each: Iterable[Fields], /) -> None:
        """The same for many things that went their way at the same moment, a line for each."""
        if _road.least <= logging.INFO:
            head = _head("info", event, self._name)
            _road.write_all(_line(head, fields) for fields in each)

    def warning(self, event: str, /, **fields: object) -> None:
        """Something that is dealt with, and should not happen often."""
        if _road.least <= logging.WARNING:
            self._say("warning", event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Something that somebody should look at."""
        self._say("error", event, fields)

    def exception(self, event: str, /, **fields: object) -> None:
        """An error, with the exception that is being handled."""
        self._say("error", event, {"exc_info": True, **fields})

    def _say(self, level: str, event: str, fields: Fields) -> None:
        _road.write(_line(_head(level, event, self._name), fields))


def configure(level: Level = "info", log_format: Format = "console", stream: TextIO | None = None) -> None:
    """Set logging up for the whole process; libraries' own records look the same."""
    _road.least, _road.stream = _LEVELS[level], stream
    is_terminal = (stream or sys.stderr).isatty()
    _road.render = _as_json if log_format == "json" else _for_colour_eyes if is_terminal else _for_eyes
    root = logging.getLogger()
    root.handlers = [_Libraries()]
    root.setLevel(level.upper())
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True
        library.setLevel(logging.WARNING if level == "info" else logging.NOTSET)  # their progress is not our news
    for name in _TELLTALES:
        logging.getLogger(name).setLevel(logging.WARNING)


def get_logger(name: str) -> Logger:
    """Give a module its logger, named as the module is."""
    return Logger(name)


class context:  # noqa: N801 — it reads as what it is: ``with context(job_id=…):``
    """Carry ``fields`` on every line logged inside, in this task and in those it starts."""

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _context.set({**_context.get(), **self._fields})

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):  # a task that was dropped is taken down by the collector, outside of its context
            _context.reset(self._token)


class _Libraries(logging.Handler):
    """Takes what libraries log by ``logging``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as a line of ours."""
        level = next((name for name, number in reversed(_LEVELS.items()) if record.levelno >= number), "debug")
        raised = record.exc_info[1] if record.exc_info else None
        fields: Fields = {} if raised is None else {"exc_info": raised}
        try:
            _road.write(_line(_head(level, record.getMessage(), record.name), fields))
        except Exception:  # noqa: BLE001 — a library's record that cannot be written must not fail the library
            self.handleError(record)


def _head(level: str, event: str, logger: str) -> Fields:
    """What a line begins with."""
    timestamp = datetime.now(UTC).isoformat()[:-6] + "Z"
    return {"timestamp": timestamp, "level": level, "event": event, "logger": logger, **_context.get()}


def _line(head: Fields, fields: Fields) -> str:
    said = {**head, **fields}
    for key in _secrets_among(tuple(said)):
        said[key] = REDACTED
    return _road.render(said, _trace(said.pop("exc_info"))) if "exc_info" in said else _road.render(said, "")


@lru_cache(maxsize=1024)
def _secrets_among(keys: tuple[str, ...]) -> list[str]:
    """Those that name a secret; remembered, because the same few sets of keys come again and again."""
    return [key for key in keys if any(word in key.lower() for word in _SECRET_WORDS)]


def _trace(exc_info: object) -> str:
    """The story of an exception, given itself or, with ``True``, the one that is being handled."""
    raised = exc_info if isinstance(exc_info, BaseException) else sys.exc_info()[1] if exc_info else None
    return "" if raised is None else "".join(traceback.format_exception(raised)).rstrip()


def _as_json(said: Fields, trace: str) -> str:
    return _encode({**said, "exception": trace} if trace else said) + "\n"


def _for_eyes(said: Fields, trace: str) -> str:
    timestamp, level, event, logger, *rest = said.items()
    shown = "".join([f" {key}={_shown(value)}" for key, value in rest])
    return f"{timestamp[1]} [{level[1]:<7}] {event[1]!s:<24} [{logger[1]}]{shown}\n" + (f"{trace}\n" if trace else "")


def _for_colour_eyes(said: Fields, trace: str) -> str:
    level = str(said["level"])
    return _for_eyes(said, trace).replace(f"[{level}", f"[{_COLOURS[level]}{level}{_PLAIN}", 1)


def _shown(value: object) -> object:
    """A value on a line of its neighbours: text that could be taken for several of them is quoted."""
    if type(value) is str:
        return value if value.isprintable() and " " not in value else repr(value)
    return value if type(value) is int else repr(value)


_encode: Final = json.JSONEncoder(default=repr).encode
"""Made once: the library's own way makes one for every line."""
_context: Final[ContextVar[Fields]] = ContextVar("log_context", default={})  # noqa: B039 — nobody changes it in place
_road: Final = _LogOutput()
