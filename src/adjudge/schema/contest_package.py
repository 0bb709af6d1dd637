"""Imports of contest packages on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adjudge.schema.base import ResponseModel, doc
from adjudge.schema.problems import FindingRead


@dataclass(frozen=True, kw_only=True)
class ContestImportItem(ResponseModel):
    """What an import does with one object, or with all of a kind."""

    kind: str = field(
        metadata=doc(
            "`contest`, `problem`, `organization`, `group`, `team`, `account`, `clarification`, `material` or "
            "`submission`."
        )
    )
    code: str = field(metadata=doc("ID in the package; empty for a number of objects."))
    name: str = field(metadata=doc("Name; for a number of objects, the number."))
    action: Literal["create", "use", "unchanged"] = field(
        metadata=doc("`use`: it exists and is used as it is; `unchanged`: the contest has it already.")
    )


@dataclass(frozen=True, kw_only=True)
class ContestImportRead(ResponseModel):
    """What an import of a contest package does or did."""

    contest: str = field(metadata=doc("Slug of the contest."))
    is_preview: bool
    is_unchanged: bool = field(metadata=doc("The contest exists as the package says; nothing is written."))
    package: str = field(metadata=doc("SHA-256 of the archive."))
    items: list[ContestImportItem]
    findings: list[FindingRead]
    verifications: list[str] = field(metadata=doc("IDs of the imports that verify new problem revisions."))
