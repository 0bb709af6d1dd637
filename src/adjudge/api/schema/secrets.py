"""Wire models of named secrets: names, never values."""

from __future__ import annotations

from pydantic import Field, SecretStr

from adjudge.api.schema.base import TIMESTAMP_EXAMPLE, ApiModel
from adjudge.domain.timestamps import format_timestamp
from adjudge.store.chains.secrets import SecretName


class SecretBody(ApiModel):
    """The value of a secret."""

    value: SecretStr = Field(
        description="8 to 8192 characters. It is encrypted, and no route answers with it.",
        examples=["correct-horse-battery"],
    )


class SecretInfo(ApiModel):
    """What may be known of a secret."""

    name: str = Field(examples=["CI_TOKEN"])
    created_by: str | None = Field(examples=["ada"])
    created_at: str = Field(examples=[TIMESTAMP_EXAMPLE])
    updated_by: str | None = Field(examples=["ada"])
    updated_at: str = Field(examples=[TIMESTAMP_EXAMPLE])

    @classmethod
    def of(cls, row: SecretName) -> SecretInfo:
        return cls(
            name=row.name,
            created_by=row.created_by,
            created_at=format_timestamp(row.created_at),
            updated_by=row.updated_by,
            updated_at=format_timestamp(row.updated_at),
        )


class SecretList(ApiModel):
    """Secrets by name."""

    items: list[SecretInfo]
