"""Balloons of contests on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class BalloonRead(ResponseModel):
    """A balloon for a solved problem."""

    participant: str = field(metadata=doc("Code of the participant."))
    name: str
    location: str | None = field(metadata=doc("Where the participant sits."))
    problem: str = field(metadata=doc("Label of the problem."))
    rgb: str | None = field(metadata=doc("Colour of the balloon.", examples=["#e11d48"]))
    color: str | None = field(metadata=doc("Name of the colour."))
    number: int = field(metadata=doc("Number of the accepted submission."))
    state: str = field(
        metadata=doc(
            "`waiting`; `delivered`; `collect`: delivered, but no longer solved; `held`: not before the thaw, for the "
            "jury only.",
            examples=["waiting"],
        )
    )
    created_at: Timestamp
    delivered_at: Timestamp | None
    delivered_by: str | None = field(metadata=doc("User name."))
    total: int = field(metadata=doc("Balloons of the participant."))
    is_first_of_problem: bool
    is_first_of_contest: bool


@dataclass(frozen=True, kw_only=True)
class BalloonPage(ResponseModel):
    """A page of balloons."""

    items: list[BalloonRead]
    next: NextCursor
