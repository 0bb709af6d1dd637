"""Awards: computed from the final board, with the award ids of the CCS Contest API, and editable.

Each award is *managed* (computed again with every change of the board) or *manual* (edited by a person, and kept).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from adjudge.contests.board import Board, BoardRow
from adjudge.contests.formats.config_fields import ConfigFields
from adjudge.contests.ranking import EqualRankOrder, RankedRow, first_solves, rank_board

MEDALS: Final = ("gold-medal", "silver-medal", "bronze-medal")
GROUP_WINNER: Final = "group-winner-"
"""Begins the id of the award of a group; the id of the group follows."""
HONORS: Final = ("highest-honors", "high-honors", "honors")
_MAX_MEDALS: Final = 10_000


class RankRule(StrEnum):
    """How final ranks are assigned."""

    NORMAL = "normal"
    """By the sort keys."""
    WORLD_FINALS = "world_finals"
    """Below the medals by solved problems only; participants below the median are not ranked."""


@dataclass(frozen=True, slots=True)
class AwardRules:
    """Which awards a contest has."""

    gold: int = 4
    silver: int = 4
    bronze: int = 4
    bronze_extra: int = 0
    """B of the CCS requirements: this many more bronze medals."""
    rank_rule: RankRule = RankRule.NORMAL
    honors: bool = False
    """Highest, high and plain honors for ranked participants without a medal, by solved problems."""
    group_winners: bool = True
    organization_winners: bool = False
    first_to_solve: bool = True

    @property
    def medals(self) -> int:
        return self.gold + self.silver + self.bronze + self.bronze_extra


@dataclass(frozen=True, slots=True)
class Award:
    """An award and who gets it."""

    id: str
    citation: str
    participant_ids: tuple[str, ...]
    is_managed: bool = True


def parse_award_rules(document: Mapping[str, Any], name: str = "awards") -> AwardRules:
    """Check the award rules of a contest; raises InvalidInput with the field and the fix."""
    fields, default = ConfigFields(document, name), AwardRules()
    rules = AwardRules(
        gold=fields.integer("gold", default.gold, 0, _MAX_MEDALS),
        silver=fields.integer("silver", default.silver, 0, _MAX_MEDALS),
        bronze=fields.integer("bronze", default.bronze, 0, _MAX_MEDALS),
        bronze_extra=fields.integer("bronze_extra", default.bronze_extra, 0, _MAX_MEDALS),
        rank_rule=RankRule(fields.choice("rank_rule", default.rank_rule, tuple(RankRule))),
        honors=fields.boolean("honors", default=default.honors),
        group_winners=fields.boolean("group_winners", default=default.group_winners),
        organization_winners=fields.boolean("organization_winners", default=default.organization_winners),
        first_to_solve=fields.boolean("first_to_solve", default=default.first_to_solve),
    )
    fields.finish()
    return rules


def final_ranks(board: Board, rules: AwardRules, order: EqualRankOrder = EqualRankOrder.NAME) -> list[RankedRow]:
    """Return the rows with their final ranks, under the rank rule."""
    rows = rank_board(board, order)
    if rules.rank_rule is RankRule.NORMAL:
        return rows
    positions = [item for item in rows if item.rank is not None]
    median = positions[len(positions) // 2].row.keys.k1 if positions else 0
    first_of_solved: dict[int, int] = {}
    for item in positions:
        if item.rank is not None and item.rank > rules.medals:
            first_of_solved.setdefault(item.row.keys.k1, item.rank)
    return [_world_finals_rank(item, rules, median, first_of_solved) for item in rows]


def compute_awards(board: Board, rules: AwardRules, order: EqualRankOrder = EqualRankOrder.NAME) -> list[Award]:
    """Compute all managed awards, in the order of the ceremony: winner, medals, ranks and honors, groups, firsts.

    A participant without a solved problem or a point gets no award. An award without participants is left out.
    """
    rows = final_ranks(board, rules, order)
    awards = [
        *_winner(rows),
        *_medals(rows, rules),
        *(_rank_awards(rows, rules) if rules.rank_rule is RankRule.WORLD_FINALS else ()),
        *(_honors(rows, rules) if rules.honors and board.is_pass_fail else ()),
        *(_group_winners(board) if rules.group_winners else ()),
        *(_organization_winners(board) if rules.organization_winners else ()),
        *(_first_to_solve(board) if rules.first_to_solve else ()),
    ]
    return [award for award in awards if award.participant_ids]


def merge_awards(computed: Iterable[Award], stored: Iterable[Award]) -> list[Award]:
    """Replace the managed awards by the computed ones and keep the manual ones.

    A manual award replaces the computed one with the same id, also if it has no participants: that is how a person
    removes an award for good.
    """
    manual = {award.id: award for award in stored if not award.is_managed}
    merged = [manual.pop(award.id, award) for award in computed]
    return [*merged, *manual.values()]


def awards_by_participant(awards: Iterable[Award]) -> dict[str, list[str]]:
    """Return the award ids of each participant, in the order of the awards."""
    found: dict[str, list[str]] = {}
    for award in awards:
        for participant_id in award.participant_ids:
            found.setdefault(participant_id, []).append(award.id)
    return found


def edit_award(award: Award, *, citation: str | None = None, participant_ids: Sequence[str] | None = None) -> Award:
    """Change an award; it is manual from then on."""
    return replace(
        award,
        citation=award.citation if citation is None else citation,
        participant_ids=award.participant_ids if participant_ids is None else tuple(participant_ids),
        is_managed=False,
    )


def _has_scored(row: BoardRow) -> bool:
    return row.keys.k1 > 0


def _ids(rows: Iterable[BoardRow]) -> tuple[str, ...]:
    return tuple(row.participant.id for row in rows)


def _winner(rows: Sequence[RankedRow]) -> Iterator[Award]:
    yield Award("winner", "Contest winner", _ids(item.row for item in rows if item.rank == 1 and _has_scored(item.row)))


def _medals(rows: Sequence[RankedRow], rules: AwardRules) -> Iterator[Award]:
    """Medals go by rank: participants of equal rank get the same medal, and the next medal may go to fewer."""
    limits = (rules.gold, rules.silver, rules.bronze + rules.bronze_extra)
    citations = ("Gold medal winner", "Silver medal winner", "Bronze medal winner")
    low = 0
    for award_id, citation, count in zip(MEDALS, citations, limits, strict=True):
        high = low + count
        yield Award(
            award_id,
            citation,
            _ids(item.row for item in rows if item.rank and low < item.rank <= high and _has_scored(item.row)),
        )
        low = high


def _honors(rows: Sequence[RankedRow], rules: AwardRules) -> Iterator[Award]:
    """Honors by solved problems, so there are none in formats with scores."""
    others = [item.row for item in rows if item.rank and item.rank > rules.medals and _has_scored(item.row)]
    lowest = _lowest_medal_solved(rows, rules)
    citations = ("Highest honors", "High honors", "Honors")
    for index, (award_id, citation) in enumerate(zip(HONORS, citations, strict=True)):
        yield Award(award_id, citation, _ids(row for row in others if _honors_step(row, lowest) == index))


def _rank_awards(rows: Sequence[RankedRow], rules: AwardRules) -> Iterator[Award]:
    ranks = sorted({item.rank for item in rows if item.rank and item.rank > rules.medals})
    for rank in ranks:
        yield Award(f"rank-{rank}", f"Rank {rank}", _ids(i.row for i in rows if i.rank == rank and _has_scored(i.row)))
    unranked = (item.row for item in rows if item.rank is None and item.row.participant.is_ranked)
    yield Award("honorable-mention", "Honorable mention", _ids(unranked))


def _lowest_medal_solved(rows: Sequence[RankedRow], rules: AwardRules) -> int:
    """Return the solved problems (or points) of the last participant with a medal."""
    return min((item.row.keys.k1 for item in rows if item.rank and item.rank <= rules.medals), default=0)


def _honors_step(row: BoardRow, lowest_medal_solved: int) -> int:
    """0: as many as the last medal; 1: one less; 2: fewer."""
    return min(max(lowest_medal_solved - row.keys.k1, 0), 2)


def _world_finals_rank(
    item: RankedRow, rules: AwardRules, median: int, first_of_solved: Mapping[int, int]
) -> RankedRow:
    if item.rank is None or item.rank <= rules.medals:
        return item
    solved = item.row.keys.k1
    if solved < median:
        return RankedRow(item.row, None)
    return RankedRow(item.row, first_of_solved[solved])


def _group_winners(board: Board) -> Iterator[Award]:
    for group in board.groups:
        leaders = _leaders(row for row in board.rows if group.id in row.participant.group_ids)
        yield Award(f"{GROUP_WINNER}{group.id}", f"Winner of {group.name}", leaders)


def _organization_winners(board: Board) -> Iterator[Award]:
    for organization_id, name in board.organizations.items():
        leaders = _leaders(row for row in board.rows if row.participant.organization_id == organization_id)
        yield Award(f"organization-winner-{organization_id}", f"Best of {name}", leaders)


def _leaders(rows: Iterable[BoardRow]) -> tuple[str, ...]:
    """Return the participants with the best keys; several if they are equal."""
    scored = [row for row in rows if row.participant.is_ranked and _has_scored(row)]
    best = max((row.keys for row in scored), default=None)
    return tuple(sorted(row.participant.id for row in scored if row.keys == best))


def _first_to_solve(board: Board) -> Iterator[Award]:
    firsts = first_solves(board)
    for problem in board.problems:
        if problem.id in firsts:
            yield Award(
                f"first-to-solve-{problem.id}", f"First to solve problem {problem.label}", (firsts[problem.id],)
            )
