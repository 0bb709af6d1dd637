"""A third party's executors: one that works, and some that each go wrong in a way of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adjudge.chains.executor import NodeContext, NodeResult


class Greet:
    """Greets somebody."""

    type: ClassVar[str] = "greet"
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1, "description": "Whom."}},
        "required": ["name"],
        "additionalProperties": False,
    }

    def __init__(self, greeting: str = "Hello") -> None:
        self._greeting = greeting

    async def execute(self, context: NodeContext) -> NodeResult:
        """Say it."""
        text = f"{self._greeting}, {context.cfg['name']}!"
        await context.log(text)
        return NodeResult({"text": text})


class UnknownDependency:
    """Asks for a part that nobody has."""

    type: ClassVar[str] = "greedy"
    cfg_schema: ClassVar[Mapping[str, Any]] = {"type": "object"}

    def __init__(self, moon: object) -> None:
        self._moon = moon

    async def execute(self, context: NodeContext) -> NodeResult:
        """Never comes to it."""
        return NodeResult(str(self._moon))


class DuplicateType(Greet):
    """Takes a type that is taken."""

    type: ClassVar[str] = "noop"


class InvalidSchema(Greet):
    """Has a schema that is none."""

    type: ClassVar[str] = "unschooled"
    cfg_schema: ClassVar[Mapping[str, Any]] = {"type": "thing"}
