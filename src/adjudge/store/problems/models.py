"""Dataclasses of problems, revisions and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class ProblemSort(StrEnum):
    """In which order problems are listed."""

    NEWEST = "newest"
    TITLE = "title"
    EASIEST = "easiest"
    HARDEST = "hardest"


@dataclass(frozen=True, slots=True)
class ProblemFilter:
    """Which problems are asked for. ``owner_id`` asks for somebody's own, drafts and all."""

    words: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    min_difficulty: float | None = None
    max_difficulty: float | None = None
    is_solved: bool | None = None
    is_tried: bool | None = None
    """Tried, and not solved yet."""
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
    """The number of the published revision; None: a draft."""
    updated_at: int
    is_solved: bool
    is_tried: bool
    """By whoever is asking: something of theirs was judged, nothing accepted yet."""
    sort_key: str | int | float


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A problem as the catalogue has it."""

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
    """One revision. In lists its definition is left empty."""

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
    """One file of a revision, by content."""

    path: str
    digest: str
    size_bytes: int
    is_secret: bool = True


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A revision to be added."""

    id: str
    problem_id: str
    format: str
    manifest_digest: str
    created_by: str
    definition: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[ManifestFile] = ()


@dataclass(frozen=True, slots=True)
class PublishedProblem:
    """A problem that can be submitted to."""

    id: str
    slug: str
    title: str
    revision_id: str
