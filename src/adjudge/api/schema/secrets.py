"""Wire models of named secrets: names, never values."""

from __future__ import annotations

from pydantic import Field, SecretStr

from adjudge.api.schema.base import ApiModel


class SecretBody(ApiModel):
    """The value of a secret."""

    value: SecretStr = Field(
        description="8 to 8192 characters. It is encrypted, and no route answers with it.",
        examples=["correct-horse-battery"],
    )
