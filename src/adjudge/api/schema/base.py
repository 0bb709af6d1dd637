"""The base class of request models, the models that belong to no group of routes, and JSON of response models."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from adjudge.schema.base import ResponseModel

R = TypeVar("R", bound=ResponseModel)


class ApiModel(BaseModel):
    """Base of request models: immutable, unknown fields rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_ADAPTERS: Final[dict[type[ResponseModel], TypeAdapter[Any]]] = {}


def _adapter(kind: type[ResponseModel]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def encode_json(model: ResponseModel) -> bytes:
    """The body of a response that is cached."""
    encoded: bytes = _adapter(type(model)).dump_json(model)
    return encoded


def decode_json(kind: type[R], body: bytes) -> R:
    """The model of a cached response."""
    decoded: R = _adapter(kind).validate_json(body)
    return decoded


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
