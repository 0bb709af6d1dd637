"""Problems, revisions and imports on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from adjudge.api.pagination import encode_cursor
from adjudge.api.schema.base import ApiModel, encode_json
from adjudge.domain.problem_metadata import MAX_DIFFICULTY, MAX_TAGS, MAX_TITLE
from adjudge.schema.problems import (
    ImportRead,
    LanguageList,
    LanguageRead,
    LanguageTemplateRead,
    ProblemPage,
    ProblemRead,
    ProblemSummary,
    ProgressRead,
)
from adjudge.services.languages import LanguageInfo, SourceTemplate
from adjudge.services.problem_detail import ProblemDetail
from adjudge.services.problem_imports import ImportState
from adjudge.services.problems import ListedProblem

Version = Annotated[
    int, Field(ge=1, le=2**53, description="Version that was read; CONFLICT if it is outdated.", examples=[3])
]
Revision = Annotated[int, Field(ge=1, le=2**53, description="Revision number, starting at 1.", examples=[2])]


class ProblemUpdate(ApiModel):
    """Metadata changes; omitted fields stay."""

    version: Version
    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE, examples=["Multiples of 3 and 5"])
    tags: list[Annotated[str, Field(max_length=60)]] | None = Field(None, max_length=MAX_TAGS)
    difficulty: float | None = Field(None, ge=0, le=MAX_DIFFICULTY, description="`null` removes it.")


class PublishRequest(ApiModel):
    """Revision to publish."""

    version: Version
    revision: Revision
    reason: str = Field("", max_length=500)


class RollbackRequest(ApiModel):
    """Revision to roll back to. Default: the previously published one."""

    version: Version
    revision: Revision | None = None
    reason: str = Field("", max_length=500)


class WithdrawRequest(ApiModel):
    """Reason for withdrawing a problem."""

    version: Version
    reason: str = Field("", max_length=500)


def import_read(state: ImportState) -> ImportRead:
    """An import, from its row and the progress of its job."""
    row, progress = state.row, state.progress
    return ImportRead.of(
        row,
        slug=row.slug or row.requested.get("slug"),
        progress=ProgressRead.of(progress) if progress and row.finished_at is None else None,
    )


def encode_problem(detail: ProblemDetail) -> bytes:
    """The response of ``GET /problems/{problem}``, as it is cached."""
    return encode_json(ProblemRead.of(detail))


def encode_problem_page(items: Sequence[ListedProblem], next_key: tuple[str | float, str] | None) -> bytes:
    """The response of ``GET /problems``, as it is cached."""
    found = [ProblemSummary.of(item) for item in items]
    return encode_json(ProblemPage(items=found, next=encode_cursor(list(next_key)) if next_key else None))


def encode_languages(items: Sequence[LanguageInfo]) -> bytes:
    """The response of ``GET /languages``, as it is cached."""
    return encode_json(LanguageList(items=[LanguageRead.of(item) for item in items]))


def encode_template(template: SourceTemplate) -> bytes:
    """The response of ``GET /languages/{language}/template``, as it is cached."""
    return encode_json(LanguageTemplateRead.of(template))
