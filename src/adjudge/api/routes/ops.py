"""For operators: system status, queue, workers, dead letters, audit log and settings."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Query

from adjudge import __version__
from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.ops import (
    DeadLetterMatchRequest,
    DeadLetterRequest,
    JudgingPauseRequest,
    WorkerControlRequest,
)
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.domain.timestamps import format_timestamp
from adjudge.schema.ops import (
    AuditEntryRead,
    AuditPage,
    DeadLetterDetail,
    DeadLetterPage,
    DeadLetterRead,
    DiscardRead,
    JobHistoryRead,
    JudgingPauseList,
    JudgingPauseRead,
    OutboxStatusRead,
    PriorityQueueRead,
    ProcessList,
    ProcessRead,
    QueueStatusRead,
    ReplayRead,
    SettingList,
    SettingRead,
    SystemStatusRead,
    WorkerList,
    WorkerRead,
)
from adjudge.schema.submissions import AttemptRead
from adjudge.services.dead_letters import ANY_DEAD_LETTER, DeadLetterSelection
from adjudge.services.judging_control import JudgingControlService
from adjudge.services.ops import JobHistory, OpsService, SystemStatus
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.OPS_READ)]
Operator = Annotated[Viewer, require_permission(Permission.OPS_CONTROL)]
Id = Annotated[str, Path(max_length=64)]
Cursor = Annotated[str | None, Query(max_length=2048, description="The `next` value of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Word = Annotated[str, Query(max_length=64)]
Filter = Annotated[str, Query(max_length=200)]
WorkerName = Annotated[str, Path(max_length=128)]
_TIMESTAMPS: Final = frozenset(
    {"available_at", "lease_until", "created_at", "updated_at", "queued_at", "started_at", "finished_at"}
)


def router(ops: OpsService, control: JudgingControlService) -> APIRouter:
    routes = api_router("ops", "/ops")
    _add_state(routes, ops)
    _add_control(routes, control)
    _add_dead_letters(routes, ops)
    _add_dead_letter_filters(routes, ops)
    _add_history(routes, ops)
    return routes


def _add_state(routes: APIRouter, ops: OpsService) -> None:
    @routes.get("/health", include_in_schema=False)
    @routes.get("/status", summary="Get the system status")
    async def status(_viewer: Reader) -> SystemStatusRead:
        return _system_status(await ops.get_system_status())

    @routes.get("/workers", summary="List online workers")
    async def workers(_viewer: Reader) -> WorkerList:
        return WorkerList(
            items=[
                WorkerRead.of(worker.info, lease_left_sec=round(worker.lease_left_sec, 1))
                for worker in await ops.list_workers()
            ]
        )

    @routes.get("/processes", summary="List live API servers, schedulers and workers")
    async def processes(_viewer: Reader) -> ProcessList:
        return ProcessList(
            items=[
                ProcessRead.of(
                    process.info,
                    seen_ago_sec=round(process.seen_ago_sec, 1),
                    lease_left_sec=round(process.lease_left_sec, 1),
                )
                for process in await ops.list_processes()
            ]
        )

    @routes.get("/queues", include_in_schema=False)
    @routes.get("/queue", summary="Get the queue status by priority")
    async def queue(_viewer: Reader) -> QueueStatusRead:
        bands, running = await ops.get_queue_status()
        return QueueStatusRead(bands=[PriorityQueueRead.of(band) for band in bands], running=running)

    @routes.get("/outbox", summary="Get the outbox status")
    async def outbox(_viewer: Reader) -> OutboxStatusRead:
        return OutboxStatusRead.of(await ops.get_outbox_status())

    @routes.get("/config", summary="List effective settings and their sources, secrets redacted")
    async def config(_viewer: Operator) -> SettingList:
        return SettingList(
            items=[
                SettingRead.of(entry, value=str(entry.value), purpose=entry.setting.help)
                for entry in ops.list_settings()
            ]
        )


def _add_dead_letters(routes: APIRouter, ops: OpsService) -> None:
    @routes.get("/dead-letters", summary="List dead letters, oldest first")
    async def letters(
        _viewer: Reader,
        *,
        state: Literal["open", "replayed", "discarded"] = "open",
        kind: Filter = "",
        error_code: Filter = "",
        problem: Filter = "",
        user: Filter = "",
        cursor: Cursor = None,
        limit: Limit = DEFAULT_LIMIT,
    ) -> DeadLetterPage:
        place = decode_cursor(cursor, [str])
        after, match = str(place[0]) if place else "", DeadLetterSelection(kind, error_code, problem, user)
        found = await ops.list_dead_letters(state=state, match=match, after=after, limit=limit + 1)
        more = encode_cursor([found[limit - 1].id]) if len(found) > limit else None
        return DeadLetterPage(
            items=[DeadLetterRead.of(letter) for letter in found[:limit]],
            next=more,
            total=await ops.count_dead_letters(match) if state == "open" else None,
        )

    @routes.get("/dead-letters/{letter_id}", summary="Get a dead letter and its attempts")
    async def letter(_viewer: Reader, letter_id: Id) -> DeadLetterDetail:
        found, attempts = await ops.get_dead_letter(letter_id)
        return DeadLetterDetail.of(found, attempts=[AttemptRead.of(attempt) for attempt in attempts])

    @routes.post("/dead-letters:replay", summary="Replay dead letters (all or none)")
    async def replay(viewer: Operator, order: DeadLetterRequest) -> ReplayRead:
        return ReplayRead(jobs=await ops.replay_dead_letters(viewer, order.ids, reason=order.reason))

    @routes.post("/dead-letters:discard", status_code=204, summary="Discard dead letters (all or none)")
    async def discard(viewer: Operator, order: DeadLetterRequest) -> None:
        await ops.discard_dead_letters(viewer, order.ids, reason=order.reason)


def _add_dead_letter_filters(routes: APIRouter, ops: OpsService) -> None:
    @routes.post("/dead-letters:replay-matching", summary="Replay all open dead letters that match filters")
    async def replay(viewer: Operator, order: DeadLetterMatchRequest) -> ReplayRead:
        return ReplayRead(jobs=await ops.replay_matching_dead_letters(viewer, _selection(order), reason=order.reason))

    @routes.post("/dead-letters:discard-matching", summary="Discard all open dead letters that match filters")
    async def discard(viewer: Operator, order: DeadLetterMatchRequest) -> DiscardRead:
        return DiscardRead(
            discarded=await ops.discard_matching_dead_letters(viewer, _selection(order), reason=order.reason)
        )


def _selection(order: DeadLetterMatchRequest) -> DeadLetterSelection:
    """The filters of a request; none at all must be meant."""
    selection = order.selection()
    if selection == ANY_DEAD_LETTER and not order.every:
        raise InvalidInput("every: set it to true if all open dead letters are meant, or give a filter.", field="every")
    return selection


def _add_control(routes: APIRouter, control: JudgingControlService) -> None:
    @routes.get("/judging-pauses", summary="List the pauses of judging")
    async def pauses(_viewer: Reader) -> JudgingPauseList:
        return JudgingPauseList(
            items=[JudgingPauseRead.of(pause.row, subject=pause.subject) for pause in await control.list_pauses()]
        )

    @routes.post("/judging-pauses", status_code=204, summary="Pause judging of everything, a language or a problem")
    async def pause(viewer: Operator, order: JudgingPauseRequest) -> None:
        await control.pause(viewer.id, order.scope, order.subject, reason=order.reason)

    @routes.post("/judging-pauses:resume", status_code=204, summary="Resume judging")
    async def resume(viewer: Operator, order: JudgingPauseRequest) -> None:
        await control.resume(viewer.id, order.scope, order.subject, reason=order.reason)

    @routes.post("/workers/{name}/control", status_code=204, summary="Pause, resume or drain a worker")
    async def control_worker(viewer: Operator, name: WorkerName, order: WorkerControlRequest) -> None:
        await control.control_worker(viewer.id, name, order.action, reason=order.reason)


def _add_history(routes: APIRouter, ops: OpsService) -> None:
    @routes.get("/audit", summary="List audit log entries, newest first")
    async def audit_log(
        _viewer: Operator,
        actor: Word = "",
        object_kind: Word = "",
        object_id: Word = "",
        cursor: Cursor = None,
        limit: Limit = DEFAULT_LIMIT,
    ) -> AuditPage:
        if bool(object_kind) != bool(object_id):
            raise InvalidInput("object_kind, object_id: specify both or neither.", field="object_id")
        place = decode_cursor(cursor, [int])
        found = await ops.list_audit_entries(
            actor=actor,
            of=(object_kind, object_id) if object_id else None,
            before=int(place[0] or 0) if place else None,
            limit=limit + 1,
        )
        more = encode_cursor([found[limit - 1].id]) if len(found) > limit else None
        return AuditPage(items=[AuditEntryRead.of(entry) for entry in found[:limit]], next=more)

    @routes.get("/jobs/{job_id}", summary="Get a job with its attempts and status changes")
    async def job(_viewer: Reader, job_id: Id) -> JobHistoryRead:
        return _job_history(await ops.get_job_history(job_id))


def _system_status(state: SystemStatus) -> SystemStatusRead:
    queues = QueueStatusRead(bands=[PriorityQueueRead.of(queue) for queue in state.queues], running=state.running)
    return SystemStatusRead.of(state, version=__version__, queues=queues)


def _job_history(history: JobHistory) -> JobHistoryRead:
    row = {name: format_timestamp(value) if name in _TIMESTAMPS else value for name, value in history.job.items()}
    return JobHistoryRead.of(history, job=row)
