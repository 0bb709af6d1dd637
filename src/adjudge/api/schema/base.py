"""The base class of all wire models, and the models that belong to no group of routes."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from adjudge.domain.timestamps import format_timestamp

TIMESTAMP_EXAMPLE: Final = "2026-01-31T12:00:00.000Z"


def _format_microseconds(value: Any) -> Any:
    return format_timestamp(value) if isinstance(value, int) else value


Timestamp = Annotated[str, BeforeValidator(_format_microseconds)]
"""RFC 3339 on the wire; converted from microseconds since the Unix epoch."""


class ApiModel(BaseModel):
    """Base of all schema models: immutable, unknown fields rejected; made of values by ``model_validate``."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)


class FieldError(ApiModel):
    """Error in one field of a request."""

    field: str = Field(examples=["body.language"])
    message: str


class ErrorResponse(ApiModel):
    """Error response (RFC 9457) with a stable ``code``."""

    type: str = Field(description="Error type URI.", examples=["urn:adjudge:error:CONFLICT"])
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable error code; see the error reference.", examples=["CONFLICT"])
    request_id: str
    fields: dict[str, str] = Field(default_factory=dict, description="Additional machine-readable fields.")
    errors: list[FieldError] = Field(default_factory=list, description="One entry per invalid field.")


class LivenessRead(ApiModel):
    """The process is alive."""

    status: Literal["live"] = "live"


class ReadinessRead(ApiModel):
    """All required components respond; optional ones may be unavailable."""

    status: Literal["ready"] = "ready"
    checks: dict[str, Literal["ok", "away"]] = Field(examples=[{"database": "ok", "blobs": "ok", "workers": "away"}])


class VersionRead(ApiModel):
    """Version of the server."""

    name: Literal["adjudge"] = "adjudge"
    version: str
    api: Literal["v1"] = "v1"
