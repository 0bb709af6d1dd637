"""Dataclasses of problems, revisions and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class ProblemSort(StrEnum):
    """Order of a list of problems."""

    NEWEST = "newest"
    TITLE = "title"
    EASIEST = "easiest"
    HARDEST = "hardest"


@dataclass(frozen=True, slots=True)
class ProblemFilter:
    """Filter and order of a list of problems. ``owner_id`` selects all problems of a user, including drafts."""

    words: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    min_difficulty: float | None = None
    max_difficulty: float | None = None
    is_solved: bool | None = None
    is_tried: bool | None = None
    """Attempted, but not solved."""
    owner_id: str | None = None
    sort: ProblemSort = ProblemSort.NEWEST


@dataclass(frozen=True, slots=True)
class ProblemListRow:
    """A problem in a list."""

    id: str
    slug: str
    title: str
    tags: tuple[str, ...]
    difficulty: float | None
    version: int
    revision: int | None
    """The number of the published revision; None for a draft."""
    updated_at: int
    is_solved: bool
    is_tried: bool
    """Whether the viewer has a judged submission, but no accepted one."""
    sort_key: str | int | float


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A problem with its metadata."""

    id: str
    slug: str
    title: str
    owner_id: str
    tags: tuple[str, ...]
    difficulty: float | None
    version: int
    published_revision_id: str | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision; lists leave its definition empty."""

    id: str
    problem_id: str
    number: int
    state: Literal["draft", "published", "withdrawn"]
    format: str
    manifest_digest: str
    definition: dict[str, Any]
    created_by: str
    created_at: int
    published_at: int | None


@dataclass(frozen=True, slots=True)
class RevisionFileRow:
    """One file of a revision."""

    path: str
    digest: str
    size_bytes: int
    is_secret: bool


@dataclass(frozen=True, slots=True)
class NewProblem:
    """A problem to be created."""

    id: str
    slug: str
    title: str
    owner_id: str
    tags: tuple[str, ...] = ()
    difficulty: float | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file of a new revision, stored as a blob."""

    path: str
    digest: str
    size_bytes: int
    is_secret: bool = True


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A revision to be created."""

    id: str
    problem_id: str
    format: str
    manifest_digest: str
    created_by: str
    definition: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[ManifestFile] = ()


@dataclass(frozen=True, slots=True)
class PublishedProblem:
    """A problem that accepts submissions."""

    id: str
    slug: str
    title: str
    revision_id: str
