"""What every model on the wire is, and the models that belong to no group of routes."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

MOMENT_EXAMPLE: Final = "2026-01-31T12:00:00.000Z"


class Wire(BaseModel):
    """Immutable; a field that is not known is refused rather than ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FieldProblem(Wire):
    """What is wrong with one field of a request."""

    field: str = Field(examples=["body.language"])
    message: str


class Problem(Wire):
    """An error as RFC 9457 lays it out, with a stable ``code``."""

    type: str = Field(description="A name of the kind of problem.", examples=["urn:adjudge:error:CONFLICT"])
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; the reference of errors lists them.", examples=["CONFLICT"])
    request_id: str
    fields: dict[str, str] = Field(default_factory=dict, description="What is needed to act on it.")
    errors: list[FieldProblem] = Field(default_factory=list, description="One entry per wrong field of the request.")


class Live(Wire):
    """The process answers."""

    status: Literal["live"] = "live"


class Ready(Wire):
    """Every part answers that the server cannot do without; others may be away."""

    status: Literal["ready"] = "ready"
    checks: dict[str, Literal["ok", "away"]] = Field(examples=[{"database": "ok", "blobs": "ok", "workers": "away"}])


class Version(Wire):
    """What is running."""

    name: Literal["adjudge"] = "adjudge"
    version: str
    api: Literal["v1"] = "v1"
