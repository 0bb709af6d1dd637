"""Models of requests, pages and events. Those of other responses are shared with the server: ``adjudge.schema``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from adjudge.schema.base import ResponseModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list."""

    items: tuple[T, ...]
    next: str | None
    """The cursor of the next page; None at the end."""


@dataclass(frozen=True, slots=True)
class SubmissionSpec:
    """A solution to be judged: a source or files."""

    problem: str
    language: str = ""
    source: str = ""
    files: Mapping[str, bytes] | None = None
    entry_point: str = ""
    contest: str = ""
    """Slug or ID of the contest that it is for; ``problem`` may then be a label."""


@dataclass(frozen=True, slots=True)
class ExecutionSpec:
    """A program to be run, on one input for each of ``stdins``."""

    language: str
    source: str
    stdins: Sequence[str] = ("",)
    cpu_ms: int | None = None
    wall_ms: int | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """A trigger of a chain to be applied."""

    name: str
    kind: str
    spec: Mapping[str, Any]
    enabled: bool = True


@dataclass(frozen=True, kw_only=True)
class SubmissionEventRead(ResponseModel):
    """An event of a submission: ``status``, ``progress`` or ``end``."""

    name: str
    submission_id: str
    status: str | None = None
    verdict: str | None = None
    stage: str | None = None
    done: int = 0
    total: int = 0
    cases: Sequence[Mapping[str, Any]] = ()
    """The latest test results visible to the caller."""
