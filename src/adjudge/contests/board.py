"""A scoreboard as a value: problems, participants and their cells, in one view (jury or public)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.domain.contest import ParticipantKind


@dataclass(frozen=True, slots=True)
class BoardProblem:
    """A column."""

    id: str
    label: str
    name: str = ""
    rgb: str | None = None
    opens_ct_us: int | None = None
    """The contest time from which participants see it; None: from the start."""


@dataclass(frozen=True, slots=True)
class BoardGroup:
    """A group of participants."""

    id: str
    name: str
    is_ranked: bool = True
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class BoardParticipant:
    """Who a row belongs to."""

    id: str
    name: str
    kind: ParticipantKind = ParticipantKind.OFFICIAL
    organization_id: str | None = None
    organization_name: str = ""
    group_ids: tuple[str, ...] = ()
    has_unranked_group: bool = False
    is_hidden: bool = False
    is_disqualified: bool = False
    icpc_id: str | None = None
    code: str = ""
    """The id that organisers gave it."""
    is_own_replay: bool = False
    """Whether it is the viewer's virtual run, which is ranked on the replay of the contest."""

    @property
    def is_ranked(self) -> bool:
        """Whether it gets a rank, first solves and awards."""
        return (
            (self.kind is ParticipantKind.OFFICIAL or self.is_own_replay)
            and not self.is_hidden
            and not self.is_disqualified
            and not self.has_unranked_group
        )

    def without_groups(self, group_ids: Set[str]) -> BoardParticipant:
        """The participant without some of its groups; whether it is ranked does not change."""
        return replace(self, group_ids=tuple(item for item in self.group_ids if item not in group_ids))


@dataclass(frozen=True, slots=True)
class BoardRow:
    """The cells of one participant, in the order of the board's problems, and the sort keys they combine to."""

    participant: BoardParticipant
    keys: RowKeys
    cells: tuple[Cell, ...]

    def with_cell(self, index: int, cell: Cell, keys: RowKeys) -> BoardRow:
        return replace(self, cells=(*self.cells[:index], cell, *self.cells[index + 1 :]), keys=keys)


@dataclass(frozen=True, slots=True)
class Board:
    """All rows of one view, in any order."""

    problems: tuple[BoardProblem, ...]
    rows: tuple[BoardRow, ...]
    groups: tuple[BoardGroup, ...] = ()
    organizations: Mapping[str, str] = field(default_factory=dict)
    """Names by id."""
    is_pass_fail: bool = True

    def filtered(self, *, group_id: str | None = None, organization_id: str | None = None) -> Board:
        """Return the board of one group, one organization, or both; ranks are computed anew among its rows."""
        rows = tuple(
            row
            for row in self.rows
            if (group_id is None or group_id in row.participant.group_ids)
            and (organization_id is None or organization_id == row.participant.organization_id)
        )
        return replace(self, rows=rows)

    def without_own_replay(self) -> Board:
        """The board without the viewer's virtual run, which gets no awards."""
        return replace(self, rows=tuple(row for row in self.rows if not row.participant.is_own_replay))


def collation_key(name: str) -> str:
    """Return a key that sorts names without regard to case and accents."""
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).casefold()
