"""Parse a raw setting into its type; an invalid one raises InvalidInput with its name, its source and the fix."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit

from adjudge.domain.errors import InvalidInput
from adjudge.settings.secret import DatabaseUrl, RedisUrl, Secret, SmtpUrl
from adjudge.settings.setting import Setting

_SWITCH: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def parse(raw: object, kind: Any, setting: Setting, name: str, source: str) -> object:
    """Parse ``raw`` as ``kind`` and check the setting's bounds and pattern."""
    try:
        value = _PARSERS[Literal if get_origin(kind) is Literal else kind](raw, kind)
    except ValueError as error:
        raise _invalid(name, source, raw, kind, str(error)) from None
    if isinstance(value, int | float) and not setting.minimum <= value <= setting.maximum:
        bounds = (
            f"at least {setting.minimum:g}"
            if setting.maximum == math.inf
            else f"from {setting.minimum:g} to {setting.maximum:g}"
        )
        raise _invalid(name, source, raw, kind, f"must be a number {bounds}")
    if setting.pattern and not re.fullmatch(setting.pattern, str(value)):
        raise _invalid(name, source, raw, kind, f"must match {setting.pattern}")
    return value


def _invalid(name: str, source: str, raw: object, kind: Any, fix: str) -> InvalidInput:
    is_secret = isinstance(kind, type) and issubclass(kind, Secret)
    shown = "" if is_secret else f" {str(raw)[:64]!r}"
    return InvalidInput(f"{name} ({source}): invalid value{shown}: {fix}.", field=name, source=source)


def _parse_number(raw: object, kind: Any) -> object:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ValueError("must be a number")
    try:
        value = kind(raw)
    except ValueError:
        raise ValueError("must be an integer" if kind is int else "must be a number") from None
    if not math.isfinite(value) or value != float(raw):
        raise ValueError("must be an integer" if kind is int else "must be a finite number")
    return value


def _parse_switch(raw: object, _kind: Any) -> object:
    value = raw if isinstance(raw, bool) else _SWITCH.get(str(raw).strip().lower())
    if value is None:
        raise ValueError("must be true or false")
    return value


def _parse_text(raw: object, _kind: Any) -> str:
    if not isinstance(raw, str | Path):
        raise ValueError("must be a quoted string")
    return str(raw).strip()


def _parse_choice(raw: object, kind: Any) -> object:
    text = _parse_text(raw, kind).lower()
    if text not in get_args(kind):
        raise ValueError(f"must be one of {', '.join(get_args(kind))}")
    return text


def _parse_redis_url(raw: object, kind: Any) -> RedisUrl:
    text = _parse_text(raw, kind)
    if urlsplit(text).scheme not in ("redis", "rediss", "unix"):
        raise ValueError("must be redis://HOST:PORT/NUMBER, or rediss:// for TLS")
    return RedisUrl(text)


def _parse_smtp_url(raw: object, kind: Any) -> SmtpUrl:
    text = _parse_text(raw, kind)
    parts = urlsplit(text)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.query not in ("", "starttls=off"):
        raise ValueError("must be smtp://USER:PASSWORD@HOST:587, or smtps:// for TLS from the start")
    return SmtpUrl(text)


def _parse_database_url(raw: object, kind: Any) -> DatabaseUrl:
    text = _parse_text(raw, kind)
    parts = urlsplit(text)
    if parts.scheme == "sqlite" and not parts.netloc and parts.path.strip("/"):
        return DatabaseUrl(text)
    if parts.scheme in ("postgresql", "postgres") and parts.path.strip("/"):
        return DatabaseUrl(re.sub("^postgres:", "postgresql:", text))
    raise ValueError("must be sqlite:///FILE (four slashes for an absolute path) or postgresql://USER@HOST:PORT/NAME")


_PARSERS: Final[Mapping[Any, Callable[[object, Any], object]]] = {
    int: _parse_number,
    float: _parse_number,
    bool: _parse_switch,
    str: _parse_text,
    Path: lambda raw, kind: Path(_parse_text(raw, kind)).expanduser(),
    Literal: _parse_choice,
    DatabaseUrl: _parse_database_url,
    RedisUrl: _parse_redis_url,
    SmtpUrl: _parse_smtp_url,
    Secret: lambda raw, kind: Secret(_parse_text(raw, kind)),
}
