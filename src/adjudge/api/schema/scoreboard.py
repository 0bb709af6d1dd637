"""Request models of awards, and conversions of scoreboard documents to response models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.contests.awards import Award
from adjudge.contests.board import Board
from adjudge.contests.ranking import first_solves
from adjudge.contests.statistics import ContestStatistics, LanguageCounts, TimelineBucket
from adjudge.domain.contest import SECOND_US
from adjudge.schema.scoreboard import (
    AwardList,
    AwardRead,
    ContestStatisticsRead,
    LanguageStatisticsRead,
    ProblemStatisticsRead,
    TimelineBucketRead,
)


class AwardWrite(ApiModel):
    """An award."""

    id: str = Field(min_length=1, max_length=200, examples=["best-newcomer"])
    citation: str = Field(min_length=1, max_length=200, examples=["Best newcomer"])
    participant_ids: list[str] = Field(max_length=10_000, examples=[["0199f4a2-5b7e-7c31-9d20-3f6a8b1c4d5e"]])
    is_managed: bool = Field(default=False, description="True: compute it again and forget the edit.")


class AwardEdit(ApiModel):
    """Who gets one award."""

    citation: str = Field(min_length=1, max_length=200, examples=["Best newcomer"])
    participant_ids: list[str] = Field(
        max_length=10_000,
        examples=[["0199f4a2-5b7e-7c31-9d20-3f6a8b1c4d5e"]],
        description="Empty: nobody gets it, also if it would be computed.",
    )


class AwardsUpdate(ApiModel):
    """The awards of a contest. Edited awards that are missing are deleted."""

    items: list[AwardWrite] = Field(max_length=1_000)

    def awards(self) -> list[Award]:
        return [
            Award(item.id, item.citation, tuple(item.participant_ids), is_managed=item.is_managed)
            for item in self.items
        ]


def read_award(award: Award) -> AwardRead:
    return AwardRead(
        id=award.id,
        citation=award.citation,
        participant_ids=list(award.participant_ids),
        is_managed=award.is_managed,
    )


def read_awards(awards: Sequence[Award]) -> AwardList:
    return AwardList(items=[read_award(item) for item in awards])


def read_statistics(board: Board, found: ContestStatistics) -> ContestStatisticsRead:
    """Statistics with the labels of the problems, in their order."""
    names = {row.participant.id: row.participant.name for row in board.rows}
    firsts = first_solves(board)
    problems = [
        ProblemStatisticsRead(
            label=problem.label,
            submissions=counts.submissions,
            pending=counts.pending,
            participants=counts.participants,
            solved=counts.solved,
            first_solved_sec=None if counts.first_solved_us is None else counts.first_solved_us // SECOND_US,
            first_solved_by=names.get(firsts.get(problem.id, "")),
            verdicts={str(verdict): count for verdict, count in sorted(counts.verdicts.items())},
            languages=_read_languages(counts.languages),
            timeline=_read_timeline(counts.timeline),
        )
        for problem in board.problems
        for counts in [found.problems[problem.id]]
    ]
    return ContestStatisticsRead(
        problems=problems, languages=_read_languages(found.languages), timeline=_read_timeline(found.timeline)
    )


def _read_languages(counts: Mapping[str, LanguageCounts]) -> list[LanguageStatisticsRead]:
    return [
        LanguageStatisticsRead(
            language=name, submissions=item.submissions, accepted=item.accepted, participants=item.participants
        )
        for name, item in counts.items()
    ]


def _read_timeline(buckets: Sequence[TimelineBucket]) -> list[TimelineBucketRead]:
    return [
        TimelineBucketRead(from_sec=item.from_us // SECOND_US, submissions=item.submissions, accepted=item.accepted)
        for item in buckets
    ]
