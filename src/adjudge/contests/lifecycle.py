"""Changes of a contest's settings, state and times, in the caller's transaction, with entries in the audit log.

A change that the scoreboard depends on takes its exclusive lock and computes it again. A change of the timeline after
the freeze first stores when that was: times that move must not show what was hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.contests import clock, scoreboard
from adjudge.contests.accounts import follow_timeline
from adjudge.contests.clock import RemovedInterval, check_new_interval, check_timeline
from adjudge.contests.formats import get_format
from adjudge.contests.formats.homework import HomeworkConfig
from adjudge.contests.times import ContestTimes, load_times
from adjudge.domain.contest import ContestPhase
from adjudge.domain.errors import Conflict, InvalidInput, InvalidTransition, NotFound, VersionConflict
from adjudge.domain.problem import AWAITING_PACKAGE
from adjudge.domain.states import ContestState
from adjudge.store import Tx
from adjudge.store.contests import clarifications, commands, queries
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.models import ContestProblem, ContestProblemRow, ContestRow, ContestSettings
from adjudge.store.problems import queries as problem_queries

_BOARD_SETTINGS: Final = (
    "format",
    "format_cfg",
    "starts_at",
    "countdown_pause_us",
    "duration_us",
    "freeze_ct_us",
    "window_us",
    "verify_required",
    "balloons_enabled",
)
"""The settings that the scoreboard, or the balloons, depend on."""
_UNPUBLISH_US: Final = 30_000_000
"""How long before the start a contest can be taken back."""
_LISTED: Final = 20
"""How many unjudged submissions an error names."""


_CHANGEABLE: Final = frozenset({ContestState.DRAFT, ContestState.PUBLISHED})
"""The states in which the scoreboard may change."""


def check_changeable(contest: ContestRow) -> None:
    """Raise Conflict if the results of a contest are finalized or it is canceled."""
    if contest.state is ContestState.FINALIZED:
        raise Conflict(f"The contest {contest.slug!r} is finalized; reopen it first.")
    if contest.state not in _CHANGEABLE:
        raise Conflict(f"The contest {contest.slug!r} is {contest.state}; its scoreboard cannot change.")


async def lock_changeable(tx: Tx, contest_id: str) -> None:
    """Keep a contest from being finalized until the commit; raises Conflict if its scoreboard may not change."""
    await scoreboard_store.lock_shared(tx, [contest_id])
    check_changeable(await queries.find_contest(tx, contest_id))


def check_settings(settings: ContestSettings) -> None:
    """Check the times and the options of the format; raises InvalidInput with the field and the fix."""
    config = get_format(settings.format).parse_config(settings.format_cfg)
    check_timeline(
        clock.Timeline(
            starts_at=settings.starts_at,
            duration_us=settings.duration_us,
            countdown_pause_us=settings.countdown_pause_us,
            freeze_ct_us=settings.freeze_ct_us,
            window_us=settings.window_us,
        )
    )
    if isinstance(config, HomeworkConfig):
        config.check_duration(settings.duration_us if settings.window_us is None else settings.window_us)


async def create(tx: Tx, contest_id: str, slug: str, settings: ContestSettings, *, created_by: str | None) -> None:
    """Create a contest as a draft."""
    check_settings(settings)
    await commands.insert(tx, contest_id, slug, settings, created_by=created_by)


async def check_version(tx: Tx, contest_id: str, version: int | None) -> None:
    """Lock a contest; raises VersionConflict if it has another version than the one that was read."""
    contest = await commands.lock(tx, contest_id)
    if version is not None and contest.version != version:
        raise VersionConflict("The contest was changed concurrently; read it again and retry.", contest_id=contest_id)


async def update(
    tx: Tx, contest_id: str, settings: ContestSettings, *, version: int, slug: str, actor: str, reason: str
) -> None:
    """Change the settings of a contest that has this version."""
    check_settings(settings)
    contest = await commands.lock(tx, contest_id)
    if contest.version != version:
        raise VersionConflict("The contest was changed concurrently; read it again and retry.", contest_id=contest_id)
    before = contest.settings
    if all(getattr(settings, name) == getattr(before, name) for name in _BOARD_SETTINGS):
        frozen_at = contest.frozen_at
        await commands.update(tx, contest, settings, slug=slug, frozen_at=frozen_at, actor=actor, reason=reason)
        return
    check_changeable(contest)
    await scoreboard_store.lock_exclusive(tx, contest_id)
    frozen_at = _frozen_at(await load_times(tx, contest), contest)
    await commands.update(tx, contest, settings, slug=slug, frozen_at=frozen_at, actor=actor, reason=reason)
    await scoreboard.refold_all(tx, contest_id)
    await follow_timeline(tx, contest_id)


async def set_problems(tx: Tx, contest_id: str, problems: Sequence[ContestProblem], *, actor: str, reason: str) -> None:
    """Replace the problems of a contest."""
    contest = await commands.lock(tx, contest_id)
    check_changeable(contest)
    if contest.state is ContestState.PUBLISHED and not problems:
        raise InvalidInput("problems: a published contest needs at least one; keep one.", field="problems")
    await scoreboard_store.lock_exclusive(tx, contest_id)
    await commands.set_problems(tx, contest_id, problems, actor=actor, reason=reason)
    await scoreboard.refold_all(tx, contest_id)


def _frozen_at(times: ContestTimes, contest: ContestRow) -> int | None:
    """When the freeze began, if it has begun: it is kept before the timeline changes."""
    began = clock.freezes_at(times.timeline)
    return began if began is not None and began <= times.now_us else contest.frozen_at


async def _lock_timeline(tx: Tx, contest_id: str) -> tuple[ContestRow, ContestTimes]:
    contest = await commands.lock(tx, contest_id)
    await scoreboard_store.lock_exclusive(tx, contest_id)
    return contest, await load_times(tx, contest)


async def _check_packages(tx: Tx, problems: Sequence[ContestProblemRow]) -> None:
    """Refuse problems whose packages are still to be uploaded."""
    revisions = await problem_queries.find_revisions(tx, [row.problem.revision_id for row in problems])
    missing = [row.problem.label for row in problems if revisions[row.problem.revision_id].format == AWAITING_PACKAGE]
    if missing:
        raise InvalidInput(
            f"problems: the packages of {', '.join(missing)} are not uploaded yet; upload or remove them.",
            field="problems",
        )


async def publish(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Publish a draft; it needs problems and a start."""
    contest = await commands.lock(tx, contest_id)
    settings = contest.settings
    if settings.starts_at is None and settings.countdown_pause_us is None:
        raise InvalidInput("starts_at: a published contest needs a start; set it first.", field="starts_at")
    problems = await queries.problems(tx, contest_id)
    if not problems:
        raise InvalidInput("problems: a published contest needs at least one; add one first.", field="problems")
    await _check_packages(tx, problems)
    await commands.set_state(tx, contest, ContestState.PUBLISHED, actor=actor, reason=reason)


async def unpublish(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Make a published contest a draft again, up to 30 seconds before its start."""
    contest = await commands.lock(tx, contest_id)
    times = await load_times(tx, contest)
    starts_at = contest.settings.starts_at
    if starts_at is not None and times.now_us > starts_at - _UNPUBLISH_US:
        raise Conflict("The contest starts within 30 seconds or has started; cancel it instead.")
    await commands.set_state(tx, contest, ContestState.DRAFT, actor=actor, reason=reason)


async def cancel(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Cancel a published contest for good."""
    contest = await commands.lock(tx, contest_id)
    await commands.set_state(tx, contest, ContestState.CANCELED, actor=actor, reason=reason)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a contest from being finalized."""

    kind: str
    """``running``, ``interval``, ``submissions`` or ``clarifications``."""
    message: str
    numbers: tuple[int, ...] = ()
    """The first submissions that it is about."""


async def find_blockers(tx: Tx, contest: ContestRow, times: ContestTimes) -> list[Blocker]:
    """What keeps a contest from being finalized, a sentence each."""
    found = []
    if not times.has_ended_for_all:
        found.append(Blocker("running", "The contest has not ended for all participants."))
    if any(item.to_at is None for item in times.timeline.removed):
        found.append(Blocker("interval", "A removed interval is open."))
    unjudged = await contest_submissions.unjudged(tx, contest.id, limit=_LISTED + 1)
    if unjudged:
        numbers = tuple(row.number for row in unjudged[:_LISTED])
        more = ", …" if len(unjudged) > _LISTED else ""
        listed = ", ".join(map(str, numbers))
        found.append(Blocker("submissions", f"Submissions without a verdict that counts: {listed}{more}.", numbers))
    if waiting := await clarifications.count_open(tx, contest.id):
        found.append(Blocker("clarifications", f"Open clarifications: {waiting}."))
    return found


async def finalize(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Finalize an ended contest; refused with the list of what is unjudged, failed or open."""
    contest, times = await _lock_timeline(tx, contest_id)
    blockers = [item.message for item in await find_blockers(tx, contest, times)]
    if blockers:
        raise Conflict("The contest cannot be finalized: " + " ".join(blockers), blockers=blockers)
    await commands.set_state(tx, contest, ContestState.FINALIZED, actor=actor, reason=reason)


async def reopen(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Take back that a contest is finalized, before its end of updates."""
    contest = await commands.lock(tx, contest_id)
    if not reason.strip():
        raise InvalidInput("reason: required to reopen a finalized contest.", field="reason")
    if contest.end_of_updates_at is not None:
        raise InvalidTransition(f"The results of the contest {contest.slug!r} are final; it cannot be reopened.")
    await commands.set_state(tx, contest, ContestState.PUBLISHED, actor=actor, reason=reason)


async def close_updates(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Make the results final: from now on the database refuses changes."""
    contest, times = await _lock_timeline(tx, contest_id)
    if contest.state is not ContestState.FINALIZED:
        raise Conflict("The contest is not finalized; finalize it first.")
    if times.timeline.has_freeze and contest.thaw_at is None:
        raise Conflict("The scoreboard is frozen; thaw it first.")
    await commands.set_times(tx, contest, end_of_updates_at=times.now_us, actor=actor, reason=reason)


async def freeze_now(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """Freeze the public scoreboard at this time, before the planned freeze."""
    contest, times = await _lock_timeline(tx, contest_id)
    check_changeable(contest)
    if contest.settings.window_us is not None:
        raise Conflict("A contest with individual windows cannot be frozen.")
    began = clock.freezes_at(times.timeline)
    if began is not None and began <= times.now_us:
        raise Conflict("The scoreboard is frozen already.")
    if times.phase() is not ContestPhase.RUNNING:
        raise Conflict("The scoreboard can be frozen only while the contest runs.")
    await commands.set_times(tx, contest, frozen_at=times.now_us, actor=actor, reason=reason)
    await scoreboard.refold_all(tx, contest_id)


async def thaw(tx: Tx, contest_id: str, *, actor: str, reason: str) -> bool:
    """Thaw the public scoreboard of a contest that has ended for all; return whether it was frozen."""
    contest = await commands.lock(tx, contest_id)
    times = await load_times(tx, contest)
    if not times.has_ended_for_all:
        raise Conflict(f"The contest {contest.slug!r} still runs; it can be thawed when it has ended for all.")
    if not times.timeline.has_freeze or contest.thaw_at is not None:
        return False
    await commands.set_times(tx, contest, thaw_at=times.now_us, actor=actor, reason=reason)
    await scoreboard.reset(tx, contest_id)
    return True


async def remove_interval(
    tx: Tx,
    contest_id: str,
    interval_id: str,
    *,
    from_at: int,
    to_at: int | None,
    actor: str,
    created_by: str | None = None,
    reason: str = "",
) -> None:
    """Remove wall time from the contest; without ``to_at`` it is paused until ``resume``."""
    contest, times = await _lock_timeline(tx, contest_id)
    check_changeable(contest)
    if contest.settings.starts_at is None or from_at < contest.settings.starts_at:
        raise InvalidInput("from_at: must not be before the start of the contest.", field="from_at")
    if to_at is not None and to_at > times.now_us:
        raise InvalidInput("to_at: must not be in the future; leave it out to pause the contest.", field="to_at")
    check_new_interval(times.timeline.removed, RemovedInterval(from_at, to_at))
    await _keep_freeze(tx, contest, times, actor)
    await commands.insert_interval(
        tx, contest_id, interval_id, from_at=from_at, to_at=to_at, created_by=created_by, actor=actor, reason=reason
    )
    await scoreboard.refold_all(tx, contest_id)
    await follow_timeline(tx, contest_id)


async def resume(tx: Tx, contest_id: str, *, actor: str, reason: str) -> None:
    """End the open removed interval now; one that has not begun is undone."""
    contest, times = await _lock_timeline(tx, contest_id)
    check_changeable(contest)
    rows = await queries.intervals(tx, [contest_id])
    paused = [row for row in rows if row.to_at is None and row.undone_at is None]
    if not paused:
        raise Conflict("The contest is not paused.")
    await _keep_freeze(tx, contest, times, actor)
    if paused[0].from_at < times.now_us:
        await commands.close_interval(tx, contest_id, paused[0].id, to_at=times.now_us, actor=actor, reason=reason)
    else:
        await commands.undo_interval(tx, contest_id, paused[0].id, actor=actor, reason=reason)
    await scoreboard.refold_all(tx, contest_id)
    await follow_timeline(tx, contest_id)


async def undo_interval(tx: Tx, contest_id: str, interval_id: str, *, actor: str, reason: str) -> None:
    """Undo a removed interval: its time counts again."""
    contest, times = await _lock_timeline(tx, contest_id)
    check_changeable(contest)
    await _keep_freeze(tx, contest, times, actor)
    if not await commands.undo_interval(tx, contest_id, interval_id, actor=actor, reason=reason):
        raise NotFound("removed_interval", interval_id)
    await scoreboard.refold_all(tx, contest_id)
    await follow_timeline(tx, contest_id)


async def _keep_freeze(tx: Tx, contest: ContestRow, times: ContestTimes, actor: str) -> None:
    """Store when the freeze began, before its contest time moves."""
    frozen_at = _frozen_at(times, contest)
    if frozen_at is not None and frozen_at != contest.frozen_at:
        await commands.set_times(tx, contest, frozen_at=frozen_at, actor=actor, reason="the timeline changes")
