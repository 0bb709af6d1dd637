"""Executors of a third party's distribution: one that works, and several that are invalid in different ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adjudge.chains.executor import NodeContext, NodeResult


class Greet:
    """Greets somebody."""

    type: ClassVar[str] = "greet"
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1, "description": "The name to greet."}},
        "required": ["name"],
        "additionalProperties": False,
    }

    def __init__(self, greeting: str = "Hello") -> None:
        self._greeting = greeting

    async def execute(self, context: NodeContext) -> NodeResult:
        """Log and return the greeting."""
        text = f"{self._greeting}, {context.cfg['name']}!"
        await context.log(text)
        return NodeResult({"text": text})


class UnknownDependency:
    """Requires a dependency that Adjudge does not provide."""

    type: ClassVar[str] = "unknown_dependency"
    cfg_schema: ClassVar[Mapping[str, Any]] = {"type": "object"}

    def __init__(self, undefined_dependency: object) -> None:
        self._undefined_dependency = undefined_dependency

    async def execute(self, context: NodeContext) -> NodeResult:
        """Never called: the executor cannot be built."""
        return NodeResult(str(self._undefined_dependency))


class DuplicateType(Greet):
    """Uses the type of a built-in executor."""

    type: ClassVar[str] = "noop"


class InvalidSchema(Greet):
    """Has a schema that is not valid JSON Schema."""

    type: ClassVar[str] = "invalid_schema"
    cfg_schema: ClassVar[Mapping[str, Any]] = {"type": "thing"}
