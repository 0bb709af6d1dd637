"""Awards of contests: computed from the board that a viewer sees, and edited by the jury."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests.awards import (
    GROUP_WINNER,
    Award,
    AwardRules,
    compute_awards,
    merge_awards,
    parse_award_rules,
)
from adjudge.contests.board import Board
from adjudge.contests.live_board import LiveBoard, public_part
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.services.scoreboard import ScoreboardService
from adjudge.services.scoreboard_access import BoardAccess
from adjudge.services.scoreboard_feed import BoardKey
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import awards as award_store
from adjudge.store.contests import participants, queries, teams
from adjudge.store.contests.activity_models import AwardRow
from adjudge.store.contests.models import ContestRow
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.ops import audit_log

_MAX_AWARDS: Final = 1_000
_MAX_TEXT: Final = 200


def award_rules(contest: ContestRow) -> AwardRules:
    """The award rules of a contest with its additional bronze medals."""
    rules = parse_award_rules(contest.settings.awards_cfg)
    return replace(rules, bronze_extra=contest.settings.bronze_extra or rules.bronze_extra)


async def read_ccs_ids(tx: Tx, contest_id: str) -> dict[str, str]:
    """The ids in the Contest API of what awards name, by ours: problems, groups, organisations and participants."""
    return {
        **{row.problem.problem_id: row.problem.label for row in await queries.problems(tx, contest_id)},
        **{row.id: row.code for row in await participants.groups(tx, contest_id)},
        **{row.id: row.code for row in await teams.organizations_of_contest(tx, contest_id)},
        **{row.id: row.code for row in await participants.on_scoreboard(tx, contest_id)},
    }


@dataclass(frozen=True, slots=True)
class AwardService:
    """Reads and edits awards."""

    database: Database
    scoreboards: ScoreboardService

    async def list_awards(self, found: BoardAccess) -> list[Award]:
        """The awards. Edited ones are added where the viewer sees the final results: they could reveal them."""
        board = await self.scoreboards.board(found)
        if board is None:
            return []
        contest = found.contest.contest
        stored = await self._stored(contest.id) if board.view == JURY else []
        return with_stored(board.board().without_own_replay(), contest, stored)

    async def find_board(self, viewer: Viewer, contest: str) -> tuple[BoardAccess, LiveBoard]:
        """For those who edit awards: the rows that can get one, which are those that everybody sees after the thaw."""
        found = await self.scoreboards.find(viewer, contest, is_jury=True)
        found.contest.require(ContestRole.ORGANISER, ContestRole.JUDGE)
        key = BoardKey(found.contest.contest.id, JURY, is_complete=False)
        return found, await self.scoreboards.feed.board(key)

    async def save(self, viewer: Viewer, contest: str, awards: Sequence[Award]) -> list[Award]:
        """Replace the edited awards; those that are managed are computed again."""
        found, board = await self.find_board(viewer, contest)
        edited = [item for item in awards if not item.is_managed]
        _check(edited, board)
        contest_id = found.contest.contest.id

        async def write(tx: Tx) -> None:
            known = [item.code for item in await award_store.awards(tx, contest_id)]
            kept = {item.id for item in edited}
            await award_store.delete_awards(tx, contest_id, [code for code in known if code not in kept])
            await award_store.upsert_awards(tx, [_stored_row(contest_id, *item) for item in enumerate(edited)])
            await _record(tx, viewer, contest_id, {"edited": [item.id for item in edited]})

        await self.database.transact(write)
        return await self.list_awards(found)

    async def edit(self, viewer: Viewer, contest: str, award: Award) -> Award:
        """Set who gets one award, and its citation; it is no longer computed. Without participants nobody gets it."""
        found, board = await self.find_board(viewer, contest)
        edited = replace(award, is_managed=False)
        _check([edited], board)
        contest_id = found.contest.contest.id

        async def write(tx: Tx) -> None:
            known = {item.code: item.ordinal for item in await award_store.awards(tx, contest_id)}
            if edited.id not in known and len(known) >= _MAX_AWARDS:
                raise InvalidInput(f"at most {_MAX_AWARDS} edited awards.", field="id")
            ordinal = known.get(edited.id, max(known.values(), default=-1) + 1)
            await award_store.upsert_awards(tx, [_stored_row(contest_id, ordinal, edited)])
            details: dict[str, object] = {"award": edited.id, "participants": list(edited.participant_ids)}
            await _record(tx, viewer, contest_id, details)

        await self.database.transact(write)
        return edited

    async def reset(self, viewer: Viewer, contest: str, award_id: str) -> None:
        """Forget the edit of an award: it is computed again, or gone if it is not one of the computed ones."""
        found, _ = await self.find_board(viewer, contest)
        contest_id = found.contest.contest.id

        async def write(tx: Tx) -> None:
            if award_id not in {item.code for item in await award_store.awards(tx, contest_id)}:
                raise NotFound("edited award", award_id)
            await award_store.delete_awards(tx, contest_id, [award_id])
            await _record(tx, viewer, contest_id, {"award": award_id, "reset": True})

        await self.database.transact(write)

    async def _stored(self, contest_id: str) -> list[AwardRow]:
        return await self.database.read(lambda tx: award_store.awards(tx, contest_id))


def with_stored(board: Board, contest: ContestRow, stored: Sequence[AwardRow]) -> list[Award]:
    """The computed awards of a board, merged with the edited ones.

    Awards are public, so hidden participants, testers and hidden groups have none, whatever board they come from. An
    edited award that only they had is left out.
    """
    shown = public_part(board)
    computed = compute_awards(shown, award_rules(contest))
    ids = {row.participant.id for row in shown.rows}
    edited = []
    for item in stored:
        kept = tuple(participant for participant in item.participants if participant in ids)
        if _is_of_shown_group(item.code, shown) and (kept or not item.participants):
            edited.append(Award(item.code, item.citation, kept, is_managed=item.managed))
    return merge_awards(computed, edited)


def _is_of_shown_group(award_id: str, board: Board) -> bool:
    """Whether an award is not that of a group, or of a group that everybody sees."""
    group_id = award_id.removeprefix(GROUP_WINNER)
    return group_id == award_id or group_id in {item.id for item in board.groups}


def _stored_row(contest_id: str, ordinal: int, award: Award) -> AwardRow:
    return AwardRow(contest_id, award.id, award.citation, award.participant_ids, managed=False, ordinal=ordinal)


async def _record(tx: Tx, viewer: Viewer, contest_id: str, details: dict[str, object]) -> None:
    await audit_log.record(
        tx,
        actor=viewer.id,
        action="contest.set_awards",
        object_kind="contest",
        objects={contest_id: details},
        reason="",
    )


def _check(awards: Sequence[Award], board: LiveBoard) -> None:
    if len(awards) > _MAX_AWARDS:
        raise InvalidInput(f"items: at most {_MAX_AWARDS} edited awards.", field="items")
    seen: set[str] = set()
    for index, item in enumerate(awards):
        if not item.id or len(item.id) > _MAX_TEXT or not item.citation or len(item.citation) > _MAX_TEXT:
            message = f"items[{index}]: id and citation must have 1 to {_MAX_TEXT} characters."
            raise InvalidInput(message, field=f"items.{index}")
        if item.id in seen:
            raise InvalidInput(f"items[{index}].id: {item.id!r} is given twice.", field=f"items.{index}.id")
        seen.add(item.id)
        if not _is_of_shown_group(item.id, board.source):
            raise InvalidInput(f"items[{index}].id: there is no such group.", field=f"items.{index}.id")
        unknown = [participant for participant in item.participant_ids if participant not in board]
        if unknown:
            field = f"items.{index}.participant_ids"
            message = f"items[{index}].participant_ids: no participant {unknown[0]!r} on the public scoreboard."
            raise InvalidInput(message, field=field)
