"""Print jobs of contests on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class PrintRead(ResponseModel):
    """A print job."""

    number: int = field(metadata=doc("Unique in the contest."))
    participant: str | None = field(metadata=doc("Code of the participant; null: printed by the staff."))
    name: str = field(metadata=doc("Name of the participant, or of the user."))
    location: str | None = field(metadata=doc("Where the participant sits."))
    file_name: str
    size_bytes: int
    pages: int
    state: str = field(metadata=doc("`pending`, `printing` (claimed) or `done`.", examples=["pending"]))
    claimed_by: str | None = field(metadata=doc("User name of who prints it; only for the staff."))
    created_at: Timestamp
    finished_at: Timestamp | None


@dataclass(frozen=True, kw_only=True)
class PrintPage(ResponseModel):
    """A page of print jobs."""

    items: list[PrintRead]
    next: NextCursor
