"""Secret values: printing and repr are redacted."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A string whose str and repr are redacted; ``reveal`` returns it."""

    _text: str

    def reveal(self) -> str:
        return self._text

    def __str__(self) -> str:
        return "[redacted]" if self._text else ""

    def __repr__(self) -> str:
        return repr(str(self))


class SecretUrl(Secret):
    """A URL that prints without its password."""

    __slots__ = ()

    def __str__(self) -> str:
        return re.sub(r"(://[^:@/]*):[^@]*@", r"\1:[redacted]@", self._text)


class DatabaseUrl(SecretUrl):
    """``sqlite:///FILE`` or ``postgresql://…``."""

    __slots__ = ()


class RedisUrl(SecretUrl):
    """``redis://…`` or ``rediss://…``."""

    __slots__ = ()


class SmtpUrl(SecretUrl):
    """``smtp://…`` or ``smtps://…``."""

    __slots__ = ()
