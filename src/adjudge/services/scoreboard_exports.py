"""Documents made from a scoreboard: exports, the unfreezing ceremony, and the submissions of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.contests import clock, exports
from adjudge.contests.awards import final_ranks
from adjudge.contests.board import Board, BoardParticipant
from adjudge.contests.ccs.live import award_objects
from adjudge.contests.ccs.scoreboard import scoreboard_object
from adjudge.contests.ccs.version import CcsVersion
from adjudge.contests.exports import StateTimes
from adjudge.contests.folding import load_rules
from adjudge.contests.formats.base import Cell, RowKeys
from adjudge.contests.html_export import scoreboard_html
from adjudge.contests.ranking import rank_board
from adjudge.contests.resolver import resolver_document, resolver_steps
from adjudge.contests.times import participant_clock
from adjudge.contests.visibility import Access, RouteClass
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.errors import NotFound
from adjudge.domain.states import ContestState
from adjudge.domain.verdict import Verdict
from adjudge.services.awards import AwardService, award_rules, read_ccs_ids
from adjudge.services.contest_access import ContestView
from adjudge.services.scoreboard import ScoreboardService
from adjudge.services.scoreboard_access import BoardAccess
from adjudge.services.scoreboard_feed import BoardKey
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import participants, scoreboard, teams
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.scoreboard import JURY, PUBLIC

_PAGE: Final = 1_000
NOT_FINAL: Final = "These results are not final."


@dataclass(frozen=True, slots=True)
class ListedSubmission:
    """A submission of a cell, as far as the viewer may see it."""

    submission_id: str
    number: int
    received_at: int
    verdict: Verdict | None
    is_accepted: bool | None
    is_ignored: bool
    may_open: bool


@dataclass(frozen=True, slots=True)
class ScoreboardExportService:
    """Builds the documents."""

    database: Database
    scoreboards: ScoreboardService
    awards: AwardService

    async def board(self, found: BoardAccess) -> Board:
        """The board that the viewer sees; without rows before the start."""
        board = await self.scoreboards.board(found)
        return Board((), ()) if board is None else found.shown_columns(board.board())

    async def ccs_scoreboard(
        self, found: BoardAccess, version: CcsVersion = CcsVersion.V2023_06, *, group_id: str | None = None
    ) -> dict[str, Any]:
        """``scoreboard.json`` of the CCS, of all teams or of one group."""
        board, times = (await self.board(found)).filtered(group_id=group_id), found.contest.times
        ct_us = found.replay_us or clock.contest_time(times.timeline, times.now_us) or 0
        is_replay = found.replay_us is not None
        state = StateTimes(started=times.timeline.starts_at) if is_replay else state_times(found.contest)
        return scoreboard_object(
            board, rank_board(board), time_at=times.now_us, contest_time_us=ct_us, state=state, version=version
        )

    async def ccs_awards(self, found: BoardAccess) -> list[dict[str, Any]]:
        """``awards.json`` of the CCS."""
        awards, contest_id = await self.awards.list_awards(found), found.contest.contest.id
        return award_objects(awards, await self.database.read(lambda tx: read_ccs_ids(tx, contest_id)))

    async def results_tsv(self, found: BoardAccess) -> str:
        board = (await self.board(found)).without_own_replay()
        rows = final_ranks(board, award_rules(found.contest.contest))
        return exports.results_tsv(board, rows, await self.awards.list_awards(found))

    async def csv(self, found: BoardAccess) -> str:
        board = await self.board(found)
        return exports.scoreboard_csv(board, rank_board(board))

    async def html(self, found: BoardAccess) -> str:
        """One file without references to others."""
        board, contest = await self.board(found), found.contest.contest
        is_final = contest.state is ContestState.FINALIZED and found.replay_us is None
        notes = [] if is_final else [NOT_FINAL]
        return scoreboard_html(
            board, rank_board(board), title=contest.settings.title, notes=[*frozen_note(found), *notes]
        )

    async def resolver(self, viewer: Viewer, contest: str) -> dict[str, Any]:
        """The unfreezing ceremony; for the jury, and after the thaw for everybody who sees the scoreboard."""
        view = await self.scoreboards.access.find(viewer, contest)
        found = await self.scoreboards.find(viewer, contest, is_jury=view.sees_all)
        if found.rows is not Access.JURY_VIEW:
            raise NotFound("resolver", contest)
        contest_id = found.contest.contest.id
        feed = self.scoreboards.feed
        public = found.shown_columns((await feed.board(BoardKey(contest_id, PUBLIC, is_complete=False))).board())
        jury = (await feed.board(BoardKey(contest_id, JURY, is_complete=False))).board()
        rules = await self.database.read(lambda tx: load_rules(tx, contest_id))
        ids = [row.participant.id for row in public.rows]
        rows = await self.database.read(lambda tx: scoreboard.read_participants(tx, ids))
        adjust = {item.id: item.penalty_adjust_sec for item in rows}

        def combine(participant: BoardParticipant, cells: Sequence[Cell]) -> RowKeys:
            return rules.format.combine(rules.config, cells, adjust.get(participant.id, 0))

        awards = await self.awards.list_awards(replace(found, is_jury=False))  # an audience sees the ceremony
        with_photo = await self.database.read(lambda tx: teams.participants_with_photo(tx, contest_id))
        photos = {item: photo_path(found.contest.contest.slug, item) for item in with_photo}
        document = resolver_document(public, resolver_steps(public, jury, combine, awards), photos=photos)
        return {
            **document,
            "contest": found.contest.contest.settings.title,
            "is_pass_fail": public.is_pass_fail,
            "awards": [{"id": item.id, "citation": item.citation} for item in awards],
        }

    async def list_cell(
        self, viewer: Viewer, contest: str, participant_id: str, label: str
    ) -> tuple[ParticipantRow, list[ListedSubmission]]:
        """The submissions of a participant to a problem, oldest first, as far as the viewer may see them."""
        view = await self.scoreboards.access.find(viewer, contest)

        async def read(tx: Tx) -> tuple[ParticipantRow, list[ContestSubmissionRow]]:
            rules = await load_rules(tx, view.contest.id)
            problem = next((item for item in rules.problems.values() if item.label == label), None)
            if problem is None:
                raise NotFound("problem", label)
            person = await participants.find(tx, participant_id)
            rows = await contest_submissions.page(
                tx, view.contest.id, limit=_PAGE, participant_id=participant_id, problem_id=problem.problem_id
            )
            return person, rows

        is_own = any(item.id == participant_id for item in view.participants)
        route = RouteClass.OWN_SUBMISSIONS if is_own else RouteClass.OTHER_SUBMISSIONS
        if view.access(route, is_own=is_own) is Access.NONE:
            raise NotFound("participant", participant_id)
        person, rows = await self.database.read(read)
        is_shown = not person.hidden and person.kind is not ParticipantKind.TEST
        if person.contest_id != view.contest.id or not (is_shown or is_own or view.sees_all):
            raise NotFound("participant", participant_id)
        if not (is_own or view.sees_all):
            rows = [row for row in rows if is_in_replay(view, person, row.received_at)]
        return person, [describe_listed(view, row, is_own=is_own) for row in reversed(rows)]


def is_in_replay(view: ContestView, participant: ParticipantRow, received_at: int) -> bool:
    """Whether a submission is before the time of the viewer's virtual run; all are if none runs."""
    until_us = view.virtual_time_us
    time_us = clock.participant_time(view.times.timeline, participant_clock(participant), received_at)
    return until_us is None or time_us is None or time_us < until_us


def photo_path(slug: str, participant_id: str) -> str:
    """Where the photo of a team is."""
    return f"/api/v1/contests/{slug}/participants/{participant_id}/photo"


def describe_listed(view: ContestView, row: ContestSubmissionRow, *, is_own: bool) -> ListedSubmission:
    """A submission as far as the viewer may see it."""
    route = RouteClass.OWN_SUBMISSIONS if is_own else RouteClass.OTHER_VERDICTS
    access = view.access(route, is_own=is_own)
    settings, verdict = view.contest.settings, row.override_verdict or row.verdict
    is_waiting = settings.verify_required and row.verified_at is None and row.override_verdict is None
    if is_waiting and not view.sees_all:
        verdict = None
    if access is Access.BEFORE_FREEZE and _is_after_freeze(view, row.received_at):
        verdict = None
    sees_result = access not in (Access.NONE, Access.RECEIPT)
    sees_verdict = access in (Access.FULL, Access.WITHOUT_CREDENTIALS, Access.VERDICT_AND_SCORE)
    details = view.access(RouteClass.OTHER_DETAILS)
    return ListedSubmission(
        submission_id=row.submission_id,
        number=row.number,
        received_at=row.received_at,
        verdict=verdict if sees_verdict else None,
        is_accepted=verdict is Verdict.AC if sees_result and verdict is not None else None,
        is_ignored=row.ignored_at is not None and view.sees_all,
        may_open=is_own or view.sees_all or details is not Access.NONE,
    )


def _is_after_freeze(view: ContestView, received_at: int) -> bool:
    timeline = view.times.timeline
    return clock.is_after_freeze(timeline, clock.contest_time(timeline, received_at), received_at)


def frozen_note(found: BoardAccess) -> list[str]:
    """The sentence that the CCS requirements fix for a frozen scoreboard."""
    if found.frozen_min is None:
        return []
    minutes = found.frozen_min
    sentence = (
        f"The scoreboard was frozen with {minutes} minutes remaining - submissions in the last {minutes} minutes of "
        "the contest are still shown as pending."
    )
    return [sentence]


def state_times(view: ContestView) -> StateTimes:
    """When the contest entered each state of the CCS, as far as it has."""
    timeline, now_us, contest = view.times.timeline, view.times.now_us, view.contest
    ended, thawed = view.times.ends_for_all_at, contest.thaw_at

    def past(at: int | None) -> int | None:
        return at if at is not None and at <= now_us else None

    return StateTimes(
        started=past(timeline.starts_at),
        frozen=past(clock.freezes_at(timeline)),
        ended=past(ended),
        thawed=past(thawed),
        finalized=past(contest.finalized_at),
        end_of_updates=past(contest.end_of_updates_at),
    )
