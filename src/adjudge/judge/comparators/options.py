"""Parses the options of a comparator: ICPC validator flags, ``name=value``, or a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge.domain.errors import InvalidInput

_WITH_VALUE = ("float_tolerance", "float_absolute_tolerance", "float_relative_tolerance")
_OFF = ("", "0", "false", "no", "off")


class ComparatorOptions:
    """Options, consumed one by one; an option that was not consumed is an error."""

    def __init__(self, kind: str, args: Sequence[str], options: Mapping[str, str]) -> None:
        self._kind = kind
        self._left: dict[str, str | None] = dict(options)
        words = iter(args)
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                self._left[name] = value
            elif name in _WITH_VALUE:
                self._left[name] = next(words, "")
            else:
                self._left[name] = None

    def flag(self, name: str) -> bool:
        """Whether the option is on; its name alone turns it on."""
        if name not in self._left:
            return False
        value = self._left.pop(name)
        return value is None or value.lower() not in _OFF

    def number(self, *names: str) -> float | None:
        """The first of these options that is set, as a non-negative number."""
        given = [(name, self._left.pop(name)) for name in names if name in self._left]
        if not given:
            return None
        name, text = given[0]
        try:
            value = float(text or "")
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise InvalidInput(f"{self._kind}: {name} must be a number of at least 0, not {text!r}.", field=name)
        return value

    def choice(self, name: str, values: Sequence[str]) -> str:
        """One of ``values``; the first is the default."""
        value = self._left.pop(name, None)
        if value is None:
            return values[0]
        if value not in values:
            raise InvalidInput(f"{self._kind}: {name} is {value!r}; must be one of {', '.join(values)}.", field=name)
        return value

    def refuse_unknown(self) -> None:
        """Raise InvalidInput if an option was not consumed."""
        if self._left:
            name = next(iter(self._left))
            raise InvalidInput(f"{self._kind}: unknown option {name!r}.", field=name)
