"""Adjudge: an online judge that never loses, duplicates or reorders a verdict."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """``adjudge.evaluate``, imported when it is used: it needs the sandbox and the settings."""
    if name == "evaluate":
        return import_module("adjudge.cli.wiring.evaluation").evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
