"""Wire models for applying a chain with its triggers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adjudge.schema.base import ResponseModel, doc
from adjudge.schema.chains import ChainRead


@dataclass(frozen=True, kw_only=True)
class ChainApplyRead(ResponseModel):
    """Result of applying a chain."""

    chain: ChainRead
    outcome: Literal["created", "changed", "unchanged"]
    triggers: dict[str, Literal["created", "changed", "unchanged", "removed"]] = field(
        metadata=doc("Keyed by trigger name.")
    )
    secrets: dict[str, str] = field(metadata=doc("Secrets of new webhook triggers by name; shown once."))
