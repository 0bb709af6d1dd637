"""Request models of awards, and conversions of scoreboard documents to response models."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.contests.awards import Award
from adjudge.contests.board import Board
from adjudge.contests.statistics import ContestStatistics
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


class AwardsUpdate(ApiModel):
    """The awards of a contest. Edited awards that are missing are deleted."""

    items: list[AwardWrite] = Field(max_length=1_000)

    def awards(self) -> list[Award]:
        return [
            Award(item.id, item.citation, tuple(item.participant_ids), is_managed=item.is_managed)
            for item in self.items
        ]


def read_awards(awards: Sequence[Award]) -> AwardList:
    return AwardList(
        items=[
            AwardRead(
                id=item.id,
                citation=item.citation,
                participant_ids=list(item.participant_ids),
                is_managed=item.is_managed,
            )
            for item in awards
        ]
    )


def read_statistics(board: Board, found: ContestStatistics) -> ContestStatisticsRead:
    """Statistics with the labels of the problems, in their order."""
    problems = [
        ProblemStatisticsRead(
            label=problem.label,
            submissions=counts.submissions,
            pending=counts.pending,
            participants=counts.participants,
            solved=counts.solved,
            first_solved_sec=None if counts.first_solved_us is None else counts.first_solved_us // SECOND_US,
            verdicts={str(verdict): count for verdict, count in sorted(counts.verdicts.items())},
        )
        for problem in board.problems
        for counts in [found.problems[problem.id]]
    ]
    languages = [
        LanguageStatisticsRead(
            language=name, submissions=item.submissions, accepted=item.accepted, participants=item.participants
        )
        for name, item in found.languages.items()
    ]
    timeline = [
        TimelineBucketRead(from_sec=item.from_us // SECOND_US, submissions=item.submissions, accepted=item.accepted)
        for item in found.timeline
    ]
    return ContestStatisticsRead(problems=problems, languages=languages, timeline=timeline)
