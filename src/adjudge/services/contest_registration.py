"""Registration for contests by participants: alone, in a team, for a virtual run or for practice."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from adjudge.contests import scoreboard
from adjudge.contests.registration import add_participants
from adjudge.domain.contest import ContestPhase, ParticipantKind, RegistrationMode
from adjudge.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.domain.states import ContestState
from adjudge.services.contest_access import ContestAccess, ContestView, find_view, make_view
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import commands, participants, queries, registration, teams
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests.models import NewParticipant, ParticipantRow, TeamRow

_T = TypeVar("_T")
MAX_NAME: Final = 100
_CODE_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without letters and digits that look alike."""
_CODE_LENGTH: Final = 10
_MAX_CODE: Final = 36
_OPEN_PHASES: Final = frozenset({ContestPhase.RUNNING, ContestPhase.FROZEN})
_ENDED: Final = frozenset({ContestPhase.ENDED, ContestPhase.THAWED})


@dataclass(frozen=True, slots=True)
class RegistrationInfo:
    """What a viewer can do about taking part."""

    view: ContestView
    refusal: str
    """Why registration is not possible now; empty if it is."""
    needs_code: bool
    may_start_virtual: bool
    may_practice: bool


@dataclass(frozen=True, slots=True)
class RegisteredTeam:
    """A new team, or one with a new join code, which is shown once."""

    participant: ParticipantRow
    join_code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ContestRegistrationService:
    """Operations of participants on their own participation."""

    database: Database
    access: ContestAccess
    new_id: IdFactory = new_id

    async def describe(self, viewer: Viewer, name: str, code: str = "") -> RegistrationInfo:
        """What the viewer can do; a valid code also shows a private contest."""

        async def look(tx: Tx) -> RegistrationInfo:
            view = await _find_to_register(tx, viewer, name, code)
            settings = view.contest.settings
            needs_code = settings.registration in (RegistrationMode.CODE, RegistrationMode.INVITATION)
            return RegistrationInfo(
                view,
                _refusal(view),
                needs_code,
                may_start_virtual=may_start_virtual(view),
                may_practice=may_practise(view),
            )

        return await self.database.read(look)

    async def register(self, viewer: Viewer, name: str, code: str = "") -> ParticipantRow:
        """Take part alone."""

        async def operation(tx: Tx, view: ContestView) -> ParticipantRow:
            if not view.contest.settings.allows_individuals:
                raise Conflict("Only teams can take part in this contest: create a team or join one.")
            kind = await _admit(tx, view, code)
            user = await users.find(tx, viewer.id)
            new = NewParticipant(
                id=self.new_id(),
                contest_id=view.contest.id,
                code=await _unused_code(tx, view.contest.id, viewer),
                name=user.display_name or user.name,
                kind=kind,
                user_id=viewer.id,
            )
            await add_participants(tx, view.contest.id, [new], actor=viewer.id, reason="registered")
            return await participants.find(tx, new.id)

        return await self._change(viewer, name, operation, code)

    async def create_team(self, viewer: Viewer, name: str, team_name: str, code: str = "") -> RegisteredTeam:
        """Take part with a new team; others join it by its join code."""
        join_code, team_id = new_code(), self.new_id()
        shown = parse_name(team_name, "name")

        async def operation(tx: Tx, view: ContestView) -> RegisteredTeam:
            _require_teams(view)
            kind = await _admit(tx, view, code)
            await teams.upsert_teams(tx, [TeamRow(team_id, team_id, shown, created_by=viewer.id)])
            await teams.add_members(tx, [(team_id, viewer.id, True)])
            await registration.set_join_code(tx, team_id, hash_code(join_code))
            new = NewParticipant(
                id=self.new_id(),
                contest_id=view.contest.id,
                code=f"team-{team_id[-12:]}",
                name=shown,
                kind=kind,
                team_id=team_id,
                members=(viewer.id,),
            )
            await add_participants(tx, view.contest.id, [new], actor=viewer.id, reason="registered")
            return RegisteredTeam(await participants.find(tx, new.id), join_code)

        return await self._change(viewer, name, operation, code)

    async def join_team(self, viewer: Viewer, name: str, join_code: str) -> ParticipantRow:
        """Join the team with this join code; it replaces the registration code."""

        async def operation(tx: Tx) -> ParticipantRow:
            contest = await queries.find_contest(tx, name)
            found = await registration.find_by_join_code(tx, contest.id, hash_code(join_code))
            if found is None or found.team_id is None:
                await find_view(tx, viewer, name)  # a hidden contest has no teams either
                raise InvalidInput("join_code: no team of this contest has this join code.", field="join_code")
            view = await make_view(tx, viewer, contest)
            _require_open(view)
            await scoreboard_store.lock_participants(tx, [found.id])
            members = {row.user_id for row in await participants.members(tx, [found.id])}
            if len(members) >= contest.settings.max_team_members:
                raise Conflict(f"The team has {len(members)} members; at most {contest.settings.max_team_members}.")
            await participants.set_members(tx, found, {*members, viewer.id})
            await teams.add_members(tx, [(found.team_id, viewer.id, False)])
            return found

        return await self.database.transact(operation)

    async def renew_join_code(self, viewer: Viewer, name: str) -> RegisteredTeam:
        """Make a new join code for the own team; the former one is invalid."""
        join_code = new_code()

        async def operation(tx: Tx) -> RegisteredTeam:
            own = _own_entry(await find_view(tx, viewer, name))
            if own.team_id is None:
                raise Conflict("You take part alone; only a team has a join code.")
            await registration.set_join_code(tx, own.team_id, hash_code(join_code))
            return RegisteredTeam(own, join_code)

        return await self.database.transact(operation)

    async def leave(self, viewer: Viewer, name: str) -> None:
        """Leave the contest before its start; a team without members leaves, too."""

        async def operation(tx: Tx) -> None:
            view = await find_view(tx, viewer, name)
            own = _own_entry(view)
            if view.phase is not ContestPhase.BEFORE or own.started_at is not None:
                raise Conflict("The contest has started; ask an organiser.")
            await scoreboard_store.lock_participants(tx, [own.id])
            others = {row.user_id for row in await participants.members(tx, [own.id])} - {viewer.id}
            if own.team_id is not None:
                await teams.remove_member(tx, own.team_id, viewer.id)
            if others:
                await participants.set_members(tx, own, others)
            else:
                await participants.delete(tx, view.contest.id, own.id)
                await scoreboard.reset(tx, view.contest.id)

        await self.database.transact(operation)

    async def start_window(self, viewer: Viewer, name: str) -> ParticipantRow:
        """Start the own window of a contest in which everyone starts when they choose."""

        async def operation(tx: Tx) -> ParticipantRow:
            view = await find_view(tx, viewer, name)
            own = _own_entry(view)
            if view.contest.settings.window_us is None:
                raise Conflict("This contest has no individual windows; it starts for all at the same time.")
            if view.contest.state is not ContestState.PUBLISHED or view.public_phase not in _OPEN_PHASES:
                raise Conflict("A window can be started only while the contest runs.")
            return await participants.start(tx, own.id)

        return await self.database.transact(operation)

    async def start_virtual(self, viewer: Viewer, name: str) -> ParticipantRow:
        """Take part after the contest as if it started now."""
        return await self._add_run(viewer, name, ParticipantKind.VIRTUAL)

    async def practise(self, viewer: Viewer, name: str) -> ParticipantRow:
        """Submit to the problems after the contest, without a row on the scoreboard."""
        return await self._add_run(viewer, name, ParticipantKind.PRACTICE)

    async def _add_run(self, viewer: Viewer, name: str, kind: ParticipantKind) -> ParticipantRow:
        is_virtual = kind is ParticipantKind.VIRTUAL

        async def operation(tx: Tx) -> ParticipantRow:
            view = await find_view(tx, viewer, name)
            settings = view.contest.settings
            if not (settings.allows_virtual if is_virtual else settings.allows_practice):
                raise Conflict(f"This contest allows no {kind} participation.")
            if not _is_public(view) or view.public_phase is not ContestPhase.THAWED:
                raise Conflict("This is possible after the contest has ended for all and the scoreboard is thawed.")
            if not _may_run_again(view):
                raise Forbidden("Only those who took part in this contest can take part again; ask an organiser.")
            _refuse_second_run(view, kind)
            run_no = max((item.run_no for item in view.participants), default=0) + 1
            user = await users.find(tx, viewer.id)
            new = NewParticipant(
                id=self.new_id(),
                contest_id=view.contest.id,
                code=await _unused_code(tx, view.contest.id, viewer, f"-{kind[0]}{run_no}"),
                name=user.display_name or user.name,
                kind=kind,
                user_id=viewer.id,
                run_no=run_no,
                started_at=view.times.now_us if is_virtual else None,
            )
            await add_participants(tx, view.contest.id, [new], actor=viewer.id, reason=f"{kind} participation")
            return await participants.find(tx, new.id)

        return await self.database.transact(operation)

    async def _change(
        self, viewer: Viewer, name: str, change: Callable[[Tx, ContestView], Awaitable[_T]], code: str
    ) -> _T:
        async def operation(tx: Tx) -> _T:
            view = await _find_to_register(tx, viewer, name, code)
            _require_open(view)
            return await change(tx, view)

        return await self.database.transact(operation)


def may_start_virtual(view: ContestView) -> bool:
    """Whether the viewer can start a virtual run now."""
    return _may_run_now(view) and view.contest.settings.allows_virtual and view.phase not in _OPEN_PHASES


def may_practise(view: ContestView) -> bool:
    """Whether the viewer can begin to practise."""
    is_practising = any(item.kind is ParticipantKind.PRACTICE for item in view.participants)
    return _may_run_now(view) and view.contest.settings.allows_practice and not is_practising


def _may_run_now(view: ContestView) -> bool:
    is_over = view.public_phase is ContestPhase.THAWED and _is_public(view)
    return is_over and view.viewer.can(Permission.CONTEST_JOIN) and _may_run_again(view)


def new_code() -> str:
    """A code that people can type: 49 bits."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))


def hash_code(code: str) -> str:
    """The stored form of a registration, invitation or join code."""
    return hashlib.sha256(code.strip().encode()).hexdigest()


def parse_name(text: str, field_name: str) -> str:
    """A name that is shown on the scoreboard."""
    name = "".join(letter for letter in text if letter.isprintable()).strip()
    if not 0 < len(name) <= MAX_NAME:
        raise InvalidInput(f"{field_name}: expected 1 to {MAX_NAME} characters.", field=field_name)
    return name


async def _find_to_register(tx: Tx, viewer: Viewer, name: str, code: str) -> ContestView:
    """The contest; a private one is found by those who have a valid code."""
    try:
        return await find_view(tx, viewer, name)
    except NotFound:
        contest = await queries.find_contest(tx, name)
        view = await make_view(tx, viewer, contest)
        if contest.state is not ContestState.PUBLISHED or not await _is_valid_code(tx, view, code):
            raise
        return view


async def _is_valid_code(tx: Tx, view: ContestView, code: str) -> bool:
    settings = view.contest.settings
    if not code:
        return False
    if settings.registration is RegistrationMode.CODE:
        return secrets.compare_digest(settings.registration_code_hash or "", hash_code(code))
    if settings.registration is RegistrationMode.INVITATION:
        found = await registration.find_invitation(tx, view.contest.id, hash_code(code), view.viewer.user_id)
        return found is not None
    return False


async def _admit(tx: Tx, view: ContestView, code: str) -> ParticipantKind:
    """The kind of the new participant; raises if the code does not admit."""
    mode = view.contest.settings.registration
    if mode is RegistrationMode.LIST:
        raise Forbidden("The organisers of this contest add its participants; ask them.")
    if mode is RegistrationMode.CODE and not await _is_valid_code(tx, view, code):
        raise InvalidInput("code: wrong registration code.", field="code")
    if mode is RegistrationMode.INVITATION:
        used = await commands.use_invitation(tx, view.contest.id, hash_code(code), view.viewer.id)
        if used is None:
            raise InvalidInput(
                "code: unknown, used up, expired or revoked invitation, or for another user.", field="code"
            )
        return used.kind
    return ParticipantKind.OFFICIAL


def _refusal(view: ContestView) -> str:
    """Why nobody, or not this viewer, can register now; empty if they can."""
    settings, now = view.contest.settings, view.times.now_us
    opens_at, closes_at = settings.registration_opens_at, settings.registration_closes_at
    reasons = {
        "Registration is possible only for a published contest.": view.contest.state is not ContestState.PUBLISHED,
        "You take part in this contest already.": any(item.run_no == 0 for item in view.participants),
        "The organisers of this contest add its participants; ask them.": settings.registration
        is RegistrationMode.LIST,
        "Registration has not opened yet.": opens_at is not None and now < opens_at,
        "Registration is closed.": closes_at is not None and now >= closes_at,
        "The contest has ended.": view.public_phase in _ENDED,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _require_open(view: ContestView) -> None:
    refusal = _refusal(view)
    is_list = view.contest.settings.registration is RegistrationMode.LIST
    if refusal:
        raise Forbidden(refusal) if is_list and not view.participants else Conflict(refusal)


def _require_teams(view: ContestView) -> None:
    if not view.contest.settings.allows_teams:
        raise Conflict("Teams cannot take part in this contest; register alone.")


def _own_entry(view: ContestView) -> ParticipantRow:
    """The participant of the contest itself, not that of a virtual run."""
    view.viewer.id  # noqa: B018  # raises for visitors
    own = next((item for item in view.participants if item.run_no == 0), None)
    if own is None:
        raise Conflict("You do not take part in this contest.")
    return own


def _may_run_again(view: ContestView) -> bool:
    """Whether the viewer may practise or start a virtual run: all may after open registration."""
    is_open = view.contest.settings.registration is RegistrationMode.OPEN
    return is_open or view.is_jury or any(item.run_no == 0 for item in view.participants)


def _refuse_second_run(view: ContestView, kind: ParticipantKind) -> None:
    if kind is ParticipantKind.PRACTICE and any(item.kind is kind for item in view.participants):
        raise Conflict("You practise in this contest already.")
    if any(
        item.kind is ParticipantKind.VIRTUAL and view.times.phase(item) in _OPEN_PHASES for item in view.participants
    ):
        raise Conflict("Your virtual participation is still running.")


def _is_public(view: ContestView) -> bool:
    return view.contest.state in (ContestState.PUBLISHED, ContestState.FINALIZED)


async def _unused_code(tx: Tx, contest_id: str, viewer: Viewer, suffix: str = "") -> str:
    """The user name as the code, or with the end of the user id if another participant has it."""
    codes = [viewer.name[: _MAX_CODE - len(end)] + end for end in (suffix, f"-{viewer.id[-8:]}{suffix}")]
    taken = await participants.find_by_codes(tx, contest_id, codes)
    return next((code for code in codes if code not in taken), codes[-1])
