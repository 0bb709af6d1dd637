"""Evaluations on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adjudge.schema.base import NextCursor, ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class EvaluationSummary(ResponseModel):
    """An evaluation."""

    id: str
    name: str = field(metadata=doc("Unique among your evaluations.", examples=["model-7"]))
    total: int = field(metadata=doc("Number of records."))
    finished: int = field(metadata=doc("Number of records with a result."))
    created_at: Timestamp
    expires_at: Timestamp

    @property
    def is_finished(self) -> bool:
        return self.finished == self.total


@dataclass(frozen=True, kw_only=True)
class EvaluationRead(EvaluationSummary):
    """An evaluation with the number of its records by verdict."""

    verdicts: Mapping[str, int] = field(
        metadata=doc(
            "Number of records by verdict; `pending`, and `error` for those that could not be evaluated.",
            examples=[{"AC": 12, "WA": 3, "pending": 85}],
        )
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationRecordsAdded(EvaluationSummary):
    """An evaluation after records were added to it."""

    added: int = field(metadata=doc("New records."))
    known: int = field(metadata=doc("Records that it had already, with the same content."))
    retried: int = field(metadata=doc("Known records that failed or were canceled, and are evaluated again."))


@dataclass(frozen=True, kw_only=True)
class EvaluationPage(ResponseModel):
    """A page of your evaluations, newest first."""

    items: list[EvaluationSummary]
    next: NextCursor
