"""A setting: a dataclass field whose metadata holds its help text, environment name and bounds."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

PREFIX: Final = "ADJUDGE_"


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything about one setting except its type and default."""

    help: str
    environment_name: str
    """Environment variable, without ``ADJUDGE_``."""
    allow_unprefixed: bool = False
    """Whether the variable is also read without the prefix."""
    minimum: float = -math.inf
    maximum: float = math.inf
    pattern: str = ""


def declare(default: object, help_text: str, environment_name: str, **rules: Any) -> Any:
    return dataclasses.field(default=default, metadata={"setting": Setting(help_text, environment_name, **rules)})


def environment_names(setting: Setting) -> tuple[str, ...]:
    """The environment variables of a setting, highest precedence first."""
    return (
        (PREFIX + setting.environment_name, setting.environment_name)
        if setting.allow_unprefixed
        else (PREFIX + setting.environment_name,)
    )
