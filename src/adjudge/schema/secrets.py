"""Wire models of named secrets: names, never values."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class SecretInfo(ResponseModel):
    """What may be known of a secret."""

    name: str = field(metadata=doc(examples=["CI_TOKEN"]))
    created_by: str | None = field(metadata=doc(examples=["ada"]))
    created_at: Timestamp
    updated_by: str | None = field(metadata=doc(examples=["ada"]))
    updated_at: Timestamp


@dataclass(frozen=True, kw_only=True)
class SecretList(ResponseModel):
    """Secrets by name."""

    items: list[SecretInfo]
