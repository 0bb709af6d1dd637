"""What clients of the Contest API may change: submit, ask and answer, the start and the thaw of a contest.

The server gives ids and times itself: requests that set them (``admin_submit``, ``admin_clar``) are refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.contests.ccs.ids import parse_number
from adjudge.contests.ccs.live import submission_object
from adjudge.contests.ccs.snapshot import KINDS
from adjudge.contests.ccs.times import parse_reltime, parse_time
from adjudge.contests.ccs.version import CcsCollection, CcsVersion, Object, convert
from adjudge.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from adjudge.domain.permissions import Permission
from adjudge.judge.sources import SourceFile
from adjudge.services.ccs import CcsService
from adjudge.services.ccs_loading import LoadedContest
from adjudge.services.clarifications import ClarificationDetail, ClarificationService, Recipients
from adjudge.services.contest_access import ContestView
from adjudge.services.contest_lifecycle import ContestLifecycleService
from adjudge.services.contest_submit import choose_participant
from adjudge.services.submit import RequestContext, SubmitRequest, SubmitService
from adjudge.services.viewer import Viewer

_SET_BY_SERVER: Final = ("id", "time", "contest_time")


@dataclass(frozen=True, slots=True)
class CcsSubmission:
    """A submission that a client makes."""

    problem_id: str
    language_id: str
    files: tuple[SourceFile, ...]
    entry_point: str = ""
    team_id: str = ""
    """The team that it is for; empty for the own one."""


@dataclass(frozen=True, slots=True)
class CcsChangeService:
    """Changes on behalf of clients of the Contest API."""

    reader: CcsService
    submitter: SubmitService
    clarifications: ClarificationService
    lifecycle: ContestLifecycleService

    async def submit(
        self, viewer: Viewer, contest: str, item: CcsSubmission, caller: RequestContext, version: CcsVersion
    ) -> Object:
        """Submit for the own team, or as an organiser for any team; return the submission."""
        found = await self._load(viewer, contest, item.team_id)
        participant = _act_for(found, item.team_id, "team_id")
        if not participant and choose_participant(found.view).kind not in KINDS:
            raise Conflict("The contest has ended.")
        request = SubmitRequest(
            item.problem_id,
            item.language_id,
            files=item.files,
            entry_point=item.entry_point,
            contest=found.view.contest.id,
            participant=participant,
        )
        reply = await self.submitter.submit(viewer, request, caller)
        rows = await self.reader.loader.load_submissions(found.snapshot, [reply.response["submission_id"]])
        converted = convert(CcsCollection.SUBMISSIONS, submission_object(rows, rows.all_rows[0]), version)
        if converted is None:
            raise NotFound("submission", reply.response["submission_id"])
        return converted

    async def _load(self, viewer: Viewer, contest: str, team_id: str) -> LoadedContest:
        """The contest; with all teams only if the viewer acts for one that is not the own one."""
        found = await self.reader.load(viewer, contest, with_teams=False)
        is_own = not team_id or _is_own(found.view, team_id)
        return found if is_own or not found.view.is_organiser else await self.reader.load(viewer, contest)

    async def clarify(self, viewer: Viewer, contest: str, body: Mapping[str, Any], version: CcsVersion) -> Object:
        """Ask as a team or for one, or answer and announce as the jury; return the clarification."""
        found = await self._load(viewer, contest, _text(body, "from_team_id"))
        _refuse(body, _SET_BY_SERVER, "the server sets it; leave it out")
        text, label = _text(body, "text", required=True), _text(body, "problem_id")
        sender = _text(body, "from_team_id")
        if sender or not found.view.is_jury:
            made = await self._ask(found, sender, body, text, label)
        else:
            viewer.require(Permission.CONTEST_JURY)
            if version is CcsVersion.V2023_06:
                _refuse(body, ("to_group_ids",), "this version has no messages to groups; use 2026-01")
            made = await self._send(found, body, text, label)
        number = str(made.row.number)
        return await self.reader.get_object(viewer, contest, CcsCollection.CLARIFICATIONS, number, version)

    async def _ask(
        self, found: LoadedContest, sender: str, body: Mapping[str, Any], text: str, label: str
    ) -> ClarificationDetail:
        _refuse(body, ("to_team_id", "to_team_ids", "to_group_ids"), "a team asks the jury; leave it out")
        _refuse(body, ("reply_to_id",), "only the jury answers; leave it out")
        participant = _act_for(found, sender, "from_team_id")
        view = found.view
        return await self.clarifications.ask(view.viewer, view.contest.id, text, label=label, participant=participant)

    async def _send(self, found: LoadedContest, body: Mapping[str, Any], text: str, label: str) -> ClarificationDetail:
        view, recipients = found.view, _recipients(body)
        reply_to = _text(body, "reply_to_id")
        if not reply_to:
            return await self.clarifications.announce(view.viewer, view.contest.id, text, recipients, label=label)
        listed = await self.clarifications.list_clarifications(view.viewer, view.contest.id, limit=1_000_000)
        number = parse_number(reply_to)
        question = next((item for item in listed.items if item.row.number == number), None)
        if question is None:
            raise InvalidInput(f"reply_to_id: there is no clarification {reply_to[:36]!r}.", field="reply_to_id")
        asker = question.from_participant
        if recipients.audience == "participant" and (asker is None or asker.code != recipients.participant):
            raise InvalidInput(
                "to_team_ids: an answer to one team goes to the team that asked; leave out reply_to_id.",
                field="to_team_ids",
            )
        return await self.clarifications.answer(view.viewer, view.contest.id, question.row.id, text, recipients)

    async def patch(self, viewer: Viewer, contest: str, body: Mapping[str, Any], version: CcsVersion) -> Object:
        """Change the start, pause the countdown, or thaw the scoreboard."""
        await self.reader.load(viewer, contest, with_teams=False)
        given = _text(body, "id", required=True)
        if given != contest:
            raise Conflict(f"id: {given[:36]!r} is not the contest of this address.")
        known = {"id", "start_time", "countdown_pause_time", "scoreboard_thaw_time", "force"}
        _refuse(body, sorted(body.keys() - known), "cannot be changed here; leave it out")
        if "scoreboard_thaw_time" in body:
            _refuse(body, ("start_time", "countdown_pause_time"), "change it in another request")
            return await self._thaw(viewer, contest, body, version)
        if "start_time" not in body:
            raise InvalidInput("start_time: missing; give it, or scoreboard_thaw_time.", field="start_time")
        start, pause = _optional_text(body, "start_time"), _optional_text(body, "countdown_pause_time")
        if start is not None and pause is not None:
            raise InvalidInput(
                "countdown_pause_time: the countdown runs to start_time; give one of them.",
                field="countdown_pause_time",
            )
        pause_us = None if pause is None else parse_reltime(pause, "countdown_pause_time")
        starts_at = None if start is None else parse_time(start, "start_time")
        await self.lifecycle.set_countdown(viewer, contest, starts_at, pause_us=pause_us)
        return await self.reader.get_contest(viewer, contest, version)

    async def _thaw(self, viewer: Viewer, contest: str, body: Mapping[str, Any], version: CcsVersion) -> Object:
        """Thaw now; a thaw cannot be planned."""
        at = parse_time(_text(body, "scoreboard_thaw_time", required=True), "scoreboard_thaw_time")
        view = (await self.reader.load(viewer, contest, with_teams=False)).view
        if view.contest.thaw_at is not None or not view.times.timeline.has_freeze:
            raise Forbidden("scoreboard_thaw_time: the scoreboard is not frozen.")
        if not view.times.has_ended_for_all:
            raise Forbidden("scoreboard_thaw_time: the contest has not ended for all teams.")
        if at > view.times.now_us:
            raise Forbidden("scoreboard_thaw_time: a thaw cannot be planned; give the present or an earlier time.")
        await self.lifecycle.thaw(viewer, contest)
        return await self.reader.get_contest(viewer, contest, version)


def parse_submission(body: Mapping[str, Any]) -> CcsSubmission:
    """The JSON document of a submission; its files are one ZIP archive."""
    _refuse(body, _SET_BY_SERVER, "the server sets it; leave it out")
    files = body.get("files")
    if not isinstance(files, list) or len(files) != 1 or not isinstance(files[0], dict):
        raise InvalidInput("files: expected a list of one object with `data`, a ZIP archive in base64.", field="files")
    mime = files[0].get("mime")
    if mime not in (None, "application/zip"):
        raise InvalidInput("files[0].mime: expected application/zip.", field="files[0].mime")
    return CcsSubmission(
        problem_id=_text(body, "problem_id", required=True),
        language_id=_text(body, "language_id", required=True),
        files=(SourceFile("files.zip", _decode(files[0].get("data"), "files[0].data")),),
        entry_point=_text(body, "entry_point"),
        team_id=_text(body, "team_id"),
    )


def _decode(data: object, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) and data else _missing(field)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{field}: not valid base64.", field=field) from None


def _missing(field: str) -> bytes:
    raise InvalidInput(f"{field}: missing.", field=field)


def _act_for(found: LoadedContest, team_id: str, field: str) -> str:
    """The participant that an organiser acts for, by code; empty if the viewer acts for the own team."""
    view = found.view
    if not team_id:
        if not view.participants and view.is_organiser:
            raise InvalidInput(f"{field}: missing; you have no team of your own.", field=field)
        return ""
    if _is_own(view, team_id):
        return ""
    if not view.is_organiser:
        raise Forbidden(f"{field}: you can act only for your own team.")
    if team_id not in {item.code for item in found.snapshot.participants.values()}:
        raise InvalidInput(f"{field}: there is no team {team_id[:36]!r}.", field=field)
    return team_id


def _is_own(view: ContestView, code: str) -> bool:
    return view.participant is not None and view.participant.code == code


def _recipients(body: Mapping[str, Any]) -> Recipients:
    one, many = _text(body, "to_team_id"), _texts(body, "to_team_ids")
    team_ids, groups = [one] if one else many, _texts(body, "to_group_ids")
    if len(team_ids) > 1 or (team_ids and groups):
        raise InvalidInput("to_team_ids: expected one team, or groups; send several messages.", field="to_team_ids")
    if team_ids:
        return Recipients("participant", participant=team_ids[0])
    return Recipients("groups", groups=groups) if groups else Recipients("all")


def _refuse(body: Mapping[str, Any], names: Sequence[str], reason: str) -> None:
    for name in names:
        if body.get(name) is not None:
            raise InvalidInput(f"{name[:64]}: {reason}.", field=name[:64])


def _optional_text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name}: expected a text.", field=name)
    return value


def _text(body: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    value = _optional_text(body, name)
    if required and not value:
        raise InvalidInput(f"{name}: missing.", field=name)
    return value or ""


def _texts(body: Mapping[str, Any], name: str) -> list[str]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{name}: expected a list of texts.", field=name)
    return value
