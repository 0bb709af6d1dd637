"""Computes the next events of an event feed from what changed in its contest since the feed was last written.

Everything is read in one snapshot: a change of the freeze and the verdicts after it are seen together or not at all.
Changes of submissions come from the logs of submissions and of the scoreboard, new submissions from their numbers.
Entries above the safe offset are used as well, but read again by the next pass: to compare a submission twice does no
harm. A change that concerns all objects (phase, version of the contest, reset of the scoreboard) starts a complete
comparison: the number of the last submission goes back to 0, and the submissions follow in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from adjudge import __version__
from adjudge.contests import clock
from adjudge.contests.ccs.feed import FeedChanges, FeedObject, FeedScope, FeedView, compare, is_hidden_from
from adjudge.contests.times import load_times
from adjudge.contests.transitions import find_transitions
from adjudge.store import Tx
from adjudge.store.contests import feed as feeds
from adjudge.store.contests import queries, scoreboard_log
from adjudge.store.contests.feed import FeedRow
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.contests.scoreboard_log import ScoreboardLogEntry
from adjudge.store.judging import events
from adjudge.store.judging.events import EventOffset

_LOG_LIMIT: Final = 1_000
_BATCH: Final = 200
"""Submissions that a pass compares."""
_MOST_PARTICIPANTS: Final = 100
"""If more participants changed, everything is compared."""
_END: Final = EventOffset(2**62, 0)
STATE: Final = "state"
AWARDS: Final = "awards"


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How often what has no log is read."""

    data_us: int = 30_000_000
    """Teams, languages and other data of which no change is known."""
    awards_us: int = 5_000_000
    """Awards, while the scoreboard changes."""
    logs_us: int = 600_000_000
    """Logs are not read if the last pass is longer ago: everything is compared."""
    mark_us: int = 60_000_000
    """A feed without changes is marked as read this often."""


class FeedSource(Protocol):
    """Loads the objects of a view."""

    data_parts: Sequence[str]
    """The collections that ``load_data`` returns: all but submissions, judgements, runs, awards and the state."""

    async def load_data(self, tx: Tx, scope: FeedScope) -> list[FeedObject]: ...

    async def load_awards(self, tx: Tx, scope: FeedScope) -> list[FeedObject]: ...

    async def load_submissions(self, tx: Tx, scope: FeedScope, ids: Sequence[str]) -> list[FeedObject]:
        """The submissions with their judgements and runs, in number order; the id is the part."""
        ...

    async def load_state(self, tx: Tx, scope: FeedScope) -> FeedObject: ...

    async def load_missing(self) -> bool:
        """Read what loaded objects lacked and the database does not have; return whether anything was found."""
        ...


@dataclass(frozen=True, slots=True)
class FeedUpdate:
    """The result of a pass, to be written if nobody else has written the feed meanwhile."""

    feed: FeedRow
    """With the version that was read and the new progress."""
    changes: FeedChanges
    has_more: bool
    """Another pass at once makes progress."""


@dataclass(frozen=True, slots=True)
class _LogChanges:
    """What the logs say since the last pass."""

    submissions: dict[str, int]
    """Changed submissions and their numbers."""
    participants: frozenset[str]
    is_reset: bool
    has_board_changes: bool
    status_end: EventOffset
    board_end: EventOffset
    is_end: bool
    """There are no more entries."""
    can_continue: bool
    """The next pass can read more entries at once: not if they follow too many entries above the safe offset."""


async def compute_update(tx: Tx, feed_id: str, source: FeedSource, options: FeedOptions) -> FeedUpdate | None:
    """What to write into a feed; None if nothing."""
    feed = await feeds.find(tx, feed_id)
    if feed is None or feed.is_final:
        return None
    contest = await queries.find_contest(tx, feed.contest_id)
    view = FeedView(feed.view)
    if is_hidden_from(contest, view):
        return None  # nobody can read it, and what happens meanwhile must not be read later
    scope = FeedScope(contest, await load_times(tx, contest), view)
    return await _Pass(tx, feed, scope, source, options).run()


class _Pass:
    """One pass over one feed."""

    def __init__(self, tx: Tx, feed: FeedRow, scope: FeedScope, source: FeedSource, options: FeedOptions) -> None:
        self._tx, self._feed, self._scope = tx, feed, scope
        self._source, self._options = source, options
        self._now = feed.now_us
        self._is_wanted = feed.requests > feed.served
        """A client waits until everything up to its request is in the feed."""

    async def run(self) -> FeedUpdate | None:
        tx, feed = self._tx, self._feed
        logs = await self._read_logs()
        phase_marker = _phase_marker(self._scope)
        data_marker = await feeds.data_marker(tx, feed.contest_id, contest_time_us=_contest_time(self._scope))
        is_complete = logs.is_reset or phase_marker != feed.phase_marker
        number = 0 if is_complete else feed.last_number
        has_new_data = is_complete or bool(logs.participants) or data_marker != feed.data_marker
        is_data_due = has_new_data or self._is_past(feed.data_at, self._options.data_us)
        awards_due = feed.awards_due or is_data_due or logs.has_board_changes
        awards_at = 0 if is_complete else feed.awards_at

        touched = [item for item, its_number in logs.submissions.items() if its_number <= number]
        touched.sort(key=lambda item: logs.submissions[item])
        batch = await feeds.next_submissions(tx, feed.contest_id, number=number, limit=_BATCH)
        is_last_batch = len(batch) < _BATCH
        last_number = batch[-1].number if batch else number
        is_end = is_last_batch and logs.is_end
        has_awards = is_end and awards_due and (self._is_wanted or self._is_past(awards_at, self._options.awards_us))
        if not (is_data_due or touched or batch or has_awards or logs.can_continue or self._is_mark_due()):
            return None

        changes = await self._compare(
            touched + [item.submission_id for item in batch], has_data=is_data_due, has_awards=has_awards, is_end=is_end
        )
        is_final = has_awards and self._scope.contest.end_of_updates_at is not None
        progress = replace(
            feed,
            last_number=last_number,
            status_xid=logs.status_end.xid,
            status_id=logs.status_end.id,
            board_xid=logs.board_end.xid,
            board_id=logs.board_end.id,
            phase_marker=phase_marker,
            data_marker=data_marker,
            awards_due=awards_due and not has_awards,
            data_at=self._now if is_data_due else feed.data_at,
            awards_at=self._now if has_awards else awards_at,
            logs_at=self._now,
            served=feed.requests if is_end else feed.served,
            is_final=is_final,
        )
        # A reset above the safe offset starts every pass from 0.
        is_stuck = (last_number, logs.board_end) == (feed.last_number, feed.board_offset)
        return FeedUpdate(progress, changes, has_more=not (is_last_batch or is_stuck) or logs.can_continue)

    async def _compare(
        self, submission_ids: Sequence[str], *, has_data: bool, has_awards: bool, is_end: bool
    ) -> FeedChanges:
        tx, scope, source = self._tx, self._scope, self._source
        parts: list[str] = [*submission_ids]
        present: list[FeedObject] = []
        if has_data:
            parts += source.data_parts
            present += await source.load_data(tx, scope)
        if submission_ids:
            present += await source.load_submissions(tx, scope, submission_ids)
        if has_awards:
            parts.append(AWARDS)
            present += await source.load_awards(tx, scope)
        changes = compare(await feeds.live(tx, self._feed.id, parts), present)
        if not is_end:
            return changes
        # The state comes last: what it announces is in the feed before it.
        state = compare(await feeds.live(tx, self._feed.id, [STATE]), [await source.load_state(tx, scope)])
        return FeedChanges(changes.events + state.events, changes.superseded + state.superseded)

    def _is_past(self, at: int, interval_us: int) -> bool:
        return at + interval_us <= self._now

    def _is_mark_due(self) -> bool:
        return self._is_wanted or self._is_past(self._feed.logs_at, self._options.mark_us)

    async def _read_logs(self) -> _LogChanges:
        tx, feed = self._tx, self._feed
        status_safe, board_safe = await events.safe_offset(tx), await scoreboard_log.safe_offset(tx)
        is_readable = (
            not self._is_past(feed.logs_at, self._options.logs_us)
            and feed.status_offset <= status_safe
            and feed.board_offset <= board_safe
        )
        if not is_readable:
            return _LogChanges({}, frozenset(), True, True, status_safe, board_safe, is_end=True, can_continue=False)
        changed = await feeds.changed_submissions(tx, feed.contest_id, feed.status_offset, limit=_LOG_LIMIT)
        entries = await scoreboard_log.read_contest(
            tx, feed.contest_id, feed.board_offset, _END, view=JURY, limit=_LOG_LIMIT
        )
        participants = frozenset(item.participant_id or "" for item in entries if item.kind == "participant")
        is_reset = len(participants) > _MOST_PARTICIPANTS or any(item.kind == "reset" for item in entries)
        found = {item.submission_id: item.number for item in changed}
        if not is_reset:
            decided = await feeds.numbers(tx, sorted(_decided(entries)))
            moved = await feeds.of_participants(tx, sorted(participants))
            found |= {item.submission_id: item.number for item in (*decided, *moved)}
        status_end = _read_to([item.offset for item in changed], status_safe)
        board_end = _read_to([item.offset for item in entries], board_safe)
        has_more_changed, has_more_entries = len(changed) == _LOG_LIMIT, len(entries) == _LOG_LIMIT
        return _LogChanges(
            found,
            participants,
            is_reset,
            bool(entries),
            status_end,
            board_end,
            is_end=not (has_more_changed or has_more_entries),
            can_continue=(has_more_changed and status_end > feed.status_offset)
            or (has_more_entries and board_end > feed.board_offset),
        )


def _decided(entries: Iterable[ScoreboardLogEntry]) -> set[str]:
    """The submissions about which the jury has decided."""
    return {item.payload for item in entries if item.kind == "submission" and item.payload is not None}


def _read_to(offsets: Sequence[EventOffset], safe: EventOffset) -> EventOffset:
    """Where the next pass continues."""
    return min(offsets[-1].next, safe) if len(offsets) == _LOG_LIMIT else safe


def _contest_time(scope: FeedScope) -> int:
    return clock.contest_time(scope.times.timeline, scope.times.now_us) or 0


def _phase_marker(scope: FeedScope) -> str:
    """What all objects depend on; a new version of the program may write them differently."""
    happened = ",".join(find_transitions(scope.contest, scope.times))
    return f"{__version__} {scope.contest.version} {scope.contest.state} {scope.times.phase()} {happened}"
