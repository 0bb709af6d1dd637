"""Materials of contests on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.domain.contest import MaterialVisibility
from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class MaterialRead(ResponseModel):
    """A file that is published with a contest."""

    name: str = field(metadata=doc("File name, unique in the contest.", examples=["rules.pdf"]))
    title: str = field(metadata=doc("Shown instead of the file name, unless it is empty."))
    visible: MaterialVisibility = field(
        metadata=doc("`always`; `start`: like the problems; `thaw`: like editorials, by `materials_public`.")
    )
    size_bytes: int
    digest: str = field(metadata=doc("SHA-256 of the content."))
    created_at: Timestamp
    url: str = field(metadata=doc("Where the file is served."))


@dataclass(frozen=True, kw_only=True)
class MaterialList(ResponseModel):
    """The materials of a contest that you may see."""

    items: list[MaterialRead]
