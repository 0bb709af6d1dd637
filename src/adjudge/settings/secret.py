"""Values that never print what they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text that never prints itself; only ``reveal`` shows it."""

    _text: str

    def reveal(self) -> str:
        """Hand out the text, for the one call that needs it."""
        return self._text

    def __str__(self) -> str:
        return "[redacted]" if self._text else ""

    def __repr__(self) -> str:
        return repr(str(self))


class SecretUrl(Secret):
    """An address that prints without its password."""

    __slots__ = ()

    def __str__(self) -> str:
        return re.sub(r"(://[^:@/]*):[^@]*@", r"\1:[redacted]@", self._text)


class DatabaseUrl(SecretUrl):
    """Where the truth is kept: ``sqlite:///FILE`` or ``postgresql://…``."""

    __slots__ = ()


class RedisUrl(SecretUrl):
    """Where the stream is: ``redis://…`` or ``rediss://…``."""

    __slots__ = ()
