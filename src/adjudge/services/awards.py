"""Awards of contests: computed from the board that a viewer sees, and edited by the jury."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.contests.awards import Award, AwardRules, compute_awards, merge_awards, parse_award_rules
from adjudge.contests.board import Board
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput
from adjudge.services.scoreboard import BoardAccess, ScoreboardService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import awards as award_store
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


@dataclass(frozen=True, slots=True)
class AwardService:
    """Reads and edits awards."""

    database: Database
    scoreboards: ScoreboardService

    async def list_awards(self, found: BoardAccess) -> list[Award]:
        """The awards. Edited ones are added where the viewer sees the final results: they could reveal them."""
        if found.key is None:
            return []
        contest = found.contest.contest
        board = (await self.scoreboards.feed.board(found.key)).board()
        stored = await self._stored(contest.id) if found.key.view == JURY else []
        return with_stored(board, contest, stored)

    async def save(self, viewer: Viewer, contest: str, awards: Sequence[Award]) -> list[Award]:
        """Replace the edited awards; those that are managed are computed again."""
        found = await self.scoreboards.find(viewer, contest, is_jury=True)
        found.contest.require(ContestRole.ORGANISER, ContestRole.JUDGE)
        board = await self.scoreboards.feed.board(found.jury_key)
        edited = [item for item in awards if not item.is_managed]
        _check(edited, {row.participant.id for row in board.rows()})
        contest_id = found.contest.contest.id

        async def write(tx: Tx) -> None:
            known = [item.code for item in await award_store.awards(tx, contest_id)]
            kept = {item.id for item in edited}
            await award_store.delete_awards(tx, contest_id, [code for code in known if code not in kept])
            rows = [
                AwardRow(contest_id, item.id, item.citation, item.participant_ids, managed=False, ordinal=position)
                for position, item in enumerate(edited)
            ]
            await award_store.upsert_awards(tx, rows)
            details = {"edited": [item.id for item in edited]}
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="contest.set_awards",
                object_kind="contest",
                objects={contest_id: details},
                reason="",
            )

        await self.database.transact(write)
        return await self.list_awards(found)

    async def _stored(self, contest_id: str) -> list[AwardRow]:
        return await self.database.read(lambda tx: award_store.awards(tx, contest_id))


def with_stored(board: Board, contest: ContestRow, stored: Sequence[AwardRow]) -> list[Award]:
    """The computed awards of a board, merged with the edited ones."""
    computed = compute_awards(board, award_rules(contest))
    edited = [Award(item.code, item.citation, tuple(item.participants), is_managed=item.managed) for item in stored]
    return merge_awards(computed, edited)


def _check(awards: Sequence[Award], known: set[str]) -> None:
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
        unknown = [participant for participant in item.participant_ids if participant not in known]
        if unknown:
            field = f"items.{index}.participant_ids"
            raise InvalidInput(f"items[{index}].participant_ids: no participant {unknown[0]!r}.", field=field)
