"""What a setting is: its type and default are those of a dataclass field, the rest is declared with it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

PREFIX: Final = "ADJUDGE_"


@dataclass(frozen=True, slots=True)
class Knob:
    """What is known of one setting besides its type and default."""

    purpose: str
    variable: str
    """Its name in the environment, without ``ADJUDGE_``."""
    bare: bool = False
    """Whether the environment may also name it without the prefix."""
    least: float = -math.inf
    most: float = math.inf
    pattern: str = ""


def declare(default: object, purpose: str, variable: str, **rules: Any) -> Any:
    """A field of a section: a setting with its default, purpose, name in the environment and bounds."""
    return dataclasses.field(default=default, metadata={"knob": Knob(purpose, variable, **rules)})


def variables(knob: Knob) -> tuple[str, ...]:
    """Name a knob as the environment does, the stronger name first."""
    return (PREFIX + knob.variable, knob.variable) if knob.bare else (PREFIX + knob.variable,)
