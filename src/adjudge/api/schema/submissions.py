"""Submissions, their results, and judge runs on the wire."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel

BATCH_MOST = 1_000
FILES_MOST = 1_000


class SubmissionFileCreate(ApiModel):
    """One file of a submission; its content is either text or Base64."""

    name: str = Field(description="Relative path.", min_length=1, max_length=1024, examples=["lib/graph.h"])
    content: str | None = Field(None, description="Text.")
    content_base64: str | None = Field(None, description="Any bytes.")


class SubmissionCreate(ApiModel):
    """A new submission."""

    problem: str = Field(
        description="Problem slug or ID; in a contest also its label.",
        min_length=1,
        max_length=200,
        examples=["multiples"],
    )
    language: str = Field(
        "", description="Language ID, alias or code; not needed for output files.", max_length=64, examples=["cpp20"]
    )
    source: str | None = Field(
        None,
        description="Source code: UTF-8, not empty, no NUL bytes.",
        examples=["#include <iostream>\nint main() {}\n"],
    )
    files: list[SubmissionFileCreate] | None = Field(
        None,
        description=(
            "Several files instead of `source`: a program, or one output file per test of an output-only problem. "
            "Archives (.zip, .tar, .tar.gz, .tgz) are unpacked."
        ),
        min_length=1,
        max_length=FILES_MOST,
    )
    entry_point: str = Field(
        "",
        description="Main class (Java, Kotlin) or main file; optional.",
        max_length=200,
        examples=["org.x.Main"],
    )
    contest: str = Field(
        "", description="Slug or ID of the contest that it is for.", max_length=64, examples=["spring-2026"]
    )


class SubmissionBatchCreate(ApiModel):
    """A batch of submissions; all are accepted, or none."""

    items: list[SubmissionCreate] = Field(min_length=1, max_length=BATCH_MOST)


class ReasonRequest(ApiModel):
    """Reason for a manual action."""

    reason: str = Field("", max_length=500, examples=["submitted twice"])


class SubmissionStatusUpdate(ApiModel):
    """Manual status change; applied only if the version matches."""

    status: str = Field(max_length=64, examples=["canceled"])
    version: int = Field(ge=1, le=2**62)
    verdict: str | None = Field(None, max_length=16, description="Verdict; required for a terminal status.")
    reason: str = Field(min_length=1, max_length=500, examples=["the judge machine was broken"])
