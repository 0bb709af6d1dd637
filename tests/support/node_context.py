"""Node contexts for tests of executors: everything is kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from adjudge.chains import executor_registry
from adjudge.chains.executor import NodeContext
from adjudge.chains.executor_registry import ExecutorRegistry
from adjudge.domain.authority import Authority


@dataclass
class FakeNodeContext:
    """A context that records checkpoints and log lines."""

    cfg: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = "run"
    chain_id: str = "chain"
    chain_name: str = "a chain"
    node_id: str = "node"
    attempt: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Any = None
    actor: str = "eva"
    authority: Authority | None = None
    trace_id: str | None = None
    stop_requested: asyncio.Event = field(default_factory=asyncio.Event)
    lines: list[str] = field(default_factory=list)

    async def save_checkpoint(self, document: Any) -> None:
        """Record the checkpoint."""
        self.checkpoint = document

    async def log(self, text: str) -> None:
        """Record the line."""
        self.lines.append(text)


@cache
def _registry() -> ExecutorRegistry:
    return executor_registry.discover_executors()


def context_for(type_name: str, cfg: Mapping[str, Any], **fields: Any) -> FakeNodeContext:
    """A context with a cfg that the type's schema allows."""
    _registry().check(type_name, cfg)
    return FakeNodeContext(cfg, **fields)


_: type[NodeContext] = FakeNodeContext
