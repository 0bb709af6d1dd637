"""Executions: programs run without a problem. Only their owner can read them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.domain.errors import InvalidInput, NotFound, StorageFull
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.permissions import Permission
from adjudge.judge.languages import Languages
from adjudge.services.admission import AdmissionController, AdmissionDecision
from adjudge.services.event_feed import EventFeed
from adjudge.services.submit import RequestContext, parse_idempotency_key, request_digest, validate_source
from adjudge.services.viewer import Viewer
from adjudge.settings.sections import ExecutionsSettings, JudgeSettings
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging import executions
from adjudge.store.judging.execution_models import ExecutionRow, ExecutionTask, NewExecution
from adjudge.store.judging.queries import MAX_ID
from adjudge.store.ops import idempotency_keys
from adjudge.store.ops.idempotency_keys import StoredResponse

WAIT_MOST_SEC: Final = 60
_ACCEPTED: Final = 202
_SOURCE_BYTES: Final = 256 * 1024
_INPUT_BYTES: Final = 4 * 1024 * 1024
"""All inputs of one execution together."""
_OUTPUT_BYTES: Final = 16 * MIB
_STORAGE_RETRY_SEC: Final = 3_600
_COMPILE_MS: Final = 120_000
_WAIT_MS: Final = 300_000
"""How long the compilation, and each sandbox run, may wait for judging in the same worker.

After an execution, judging may use the worker for four times as long as it waited, and a compilation may take a minute.
"""


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """A requested execution."""

    language: str
    source: str
    stdins: tuple[str, ...]
    cpu_ms: int
    wall_ms: int
    memory_mib: int
    other_limits: Mapping[str, int] = field(default_factory=dict)
    """Fields of ``Limits`` besides time and memory; the caller has checked them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """``ExecutionOptions.encode()``."""
    client_data: Mapping[str, Any] | None = None
    callback_url: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionService:
    """Executions of the viewer; only their owner can read them."""

    database: Database
    jobs: JobCommands
    languages: Languages
    settings: ExecutionsSettings
    judge_settings: JudgeSettings
    admission: AdmissionController
    feed: EventFeed
    new_id: IdFactory = new_id

    async def create_executions(
        self,
        viewer: Viewer,
        requests: Sequence[ExecutionRequest],
        caller: RequestContext,
        *,
        wait_sec: float,
        is_batch: bool = False,
    ) -> list[ExecutionRow]:
        """Create executions, all or none; with ``wait_sec``, wait up to that time until they are finished.

        A repeated request with the same idempotency key returns the first executions in their current state.
        """
        key = parse_idempotency_key(viewer, caller)
        values = ([getattr(item, name) for name in item.__slots__] for item in requests)
        digest = request_digest("execute", values, is_batch) if key is not None else ""
        if key is not None:
            stored = (await self.database.read(lambda tx: idempotency_keys.find(tx, [key]))).get(key)
            if stored is not None:
                return await self._existing_executions(viewer, stored.check_request(digest), wait_sec)
        self._check_all(requests, is_batch=is_batch)
        languages = {self.languages.get(request.language).id for request in requests}
        admitted = await self.admission.admit(viewer, address=caller.address, count=len(requests), languages=languages)
        items = [self._new(viewer, request, caller, admitted) for request in requests]
        is_bounded = not viewer.can(Permission.SUBMISSION_UNLIMITED)
        response = StoredResponse(digest, _ACCEPTED, {"ids": [item.id for item in items]})

        async def create(tx: Tx) -> list[str] | StoredResponse:
            if key is not None and key not in await idempotency_keys.claim(tx, {key: response}):
                return (await idempotency_keys.find(tx, [key]))[key].check_request(digest)
            if is_bounded:
                self._check_quota(items, await executions.kept_bytes(tx, viewer.id))
            return await executions.create(tx, self.jobs, items, new_id=self.new_id)

        created = await self.database.transact(create)
        if isinstance(created, StoredResponse):  # a concurrent request used the same key
            return await self._existing_executions(viewer, created, wait_sec)
        await self._wait_finished(created, wait_sec)
        return await self._read_all(viewer, response)

    async def _existing_executions(
        self, viewer: Viewer, response: StoredResponse, wait_sec: float
    ) -> list[ExecutionRow]:
        """The executions of an idempotency key; expired ones are deleted and not run again."""
        found = await self._read_all(viewer, response)
        unfinished = [item.job_id for item in found if item.finished_at is None]
        if not unfinished or wait_sec <= 0:
            return found
        await self._wait_finished(unfinished, wait_sec)
        return await self._read_all(viewer, response)

    async def _wait_finished(self, job_ids: Sequence[str], wait_sec: float) -> None:
        if wait_sec > 0:
            timeout_sec = min(wait_sec, WAIT_MOST_SEC)
            await asyncio.gather(*(self.feed.wait_job_finished(job_id, timeout_sec) for job_id in job_ids))

    async def _read_all(self, viewer: Viewer, response: StoredResponse) -> list[ExecutionRow]:
        ids = response.response["ids"]
        found = await self.database.read(lambda tx: executions.find_many(tx, ids, viewer.id))
        missing = [execution_id for execution_id in ids if execution_id not in found]
        if missing:
            raise NotFound("execution", missing[0])
        return [found[execution_id] for execution_id in ids]

    def _check_quota(self, items: Sequence[NewExecution], kept_bytes: int) -> None:
        """Reject executions that exceed the storage quota: stored outputs plus possible outputs of active ones."""
        most = self.settings.user_bytes
        wanted = sum(item.kept_bytes for item in items)
        if most and wanted > most:
            raise InvalidInput(
                f"items: inputs and outputs may take {wanted} bytes; at most {most} are stored per user "
                "(executions.user_bytes). Send fewer inputs at a time.",
                field="items",
            )
        if most and kept_bytes + wanted > most:
            raise StorageFull(
                f"Your executions take {kept_bytes} bytes, and these may take {wanted} more; at most {most} "
                "(executions.user_bytes) are kept. The oldest are removed in time (executions.keep_sec).",
                limit=most,
                retry_after_sec=_STORAGE_RETRY_SEC,
            )

    def _output_bytes(self, inputs: int) -> int:
        """The maximum size of an execution's outputs in the database, in base64."""
        judge = self.judge_settings
        most = inputs * (judge.stdout_limit_bytes + judge.stderr_limit_bytes)
        return min(self.settings.output_bytes, most) * 4 // 3 + 8 * inputs

    def _check_all(self, requests: Sequence[ExecutionRequest], *, is_batch: bool) -> None:
        for index, request in enumerate(requests):
            self._check(request, f"items[{index}]." if is_batch else "")
        most = self.settings.inputs
        if sum(len(request.stdins) for request in requests) > most:
            raise InvalidInput(f"items: at most {most} inputs per request.", field="items")

    def _check(self, request: ExecutionRequest, name: str) -> None:
        allowed = self.settings
        self.languages.get_offered(request.language, f"{name}language")
        size = len(validate_source(request.source, f"{name}source"))
        if size > _SOURCE_BYTES:
            raise InvalidInput(
                f"{name}source: {size} bytes exceed the limit of {_SOURCE_BYTES}.", field=f"{name}source"
            )
        if len(request.stdins) > allowed.inputs:
            raise InvalidInput(f"{name}stdins: at most {allowed.inputs} inputs.", field=f"{name}stdins")
        for limit, most, unit in (("cpu_ms", allowed.cpu_ms, "ms"), ("memory_mib", allowed.memory_mib, "MiB")):
            if getattr(request, limit) > most:
                raise InvalidInput(f"{name}limits.{limit}: at most {most} {unit}.", field=f"{name}limits.{limit}")
        if request.wall_ms > 3 * allowed.cpu_ms:
            raise InvalidInput(f"{name}limits.wall_ms: at most {3 * allowed.cpu_ms} ms.", field=f"{name}limits.wall_ms")
        if len(request.stdins) * request.wall_ms > allowed.total_sec * 1_000:
            raise InvalidInput(
                f"{name}limits.wall_ms: {len(request.stdins)} inputs x {request.wall_ms} ms exceed the "
                f"total of {allowed.total_sec} s.",
                field=f"{name}limits.wall_ms",
            )
        _check_inputs(request.stdins, f"{name}stdin")

    def _new(
        self, viewer: Viewer, request: ExecutionRequest, caller: RequestContext, admitted: AdmissionDecision
    ) -> NewExecution:
        language = self.languages.get(request.language)
        limits = Limits(
            **{"output_bytes": _OUTPUT_BYTES, **request.other_limits},
            cpu_ms=request.cpu_ms,
            wall_ms=request.wall_ms,
            memory_bytes=request.memory_mib * MIB,
        )
        names = {"cpu_ms", "wall_ms", "memory_bytes", "output_bytes", *request.other_limits}
        return NewExecution(
            id=self.new_id(),
            user_id=viewer.id,
            language=language.id,
            source=request.source,
            stdins=request.stdins,
            options=request.options,
            client_data=request.client_data,
            callback_url=request.callback_url,
            limits={name: getattr(limits, name) for name in sorted(names)},
            ttl_ms=self.settings.keep_sec * 1_000,
            output_bytes=self._output_bytes(len(request.stdins)),
            priority=admitted.band,
            delay_ms=admitted.delay_ms,
            timeout_ms=_WAIT_MS + _COMPILE_MS + len(request.stdins) * (_WAIT_MS + 2 * language.limits(limits).wall_ms),
            trace_id=caller.trace_id,
            request_id=caller.request_id,
        )

    async def get_execution(self, viewer: Viewer, execution_id: str, *, wait_sec: float = 0) -> ExecutionRow:
        found = await self.database.read(lambda tx: executions.find(tx, execution_id, viewer.id))
        if wait_sec > 0 and found.finished_at is None:
            await self.feed.wait_job_finished(found.job_id, min(wait_sec, WAIT_MOST_SEC))
            found = await self.database.read(lambda tx: executions.find(tx, execution_id, viewer.id))
        return found

    async def find_executions(self, viewer: Viewer, execution_ids: Sequence[str]) -> dict[str, ExecutionRow]:
        """Executions of the viewer by id; those that do not exist are left out."""
        return await self.database.read(lambda tx: executions.find_many(tx, execution_ids, viewer.id))

    async def find_task(self, viewer: Viewer, execution_id: str) -> ExecutionTask:
        """What an execution of the viewer runs: its source and inputs."""

        async def read(tx: Tx) -> ExecutionTask | None:
            await executions.find(tx, execution_id, viewer.id)
            return await executions.find_task(tx, execution_id)

        task = await self.database.read(read)
        if task is None:
            raise NotFound("execution", execution_id)
        return task

    async def page_of_client(self, viewer: Viewer, *, page: int, limit: int) -> tuple[list[ExecutionRow], int]:
        """One page of the viewer's executions with client data, and how many there are."""
        return await self.database.read(lambda tx: executions.page_of_client(tx, viewer.id, page=page, limit=limit))

    async def list_executions(self, viewer: Viewer, *, before: str | None, limit: int) -> list[ExecutionRow]:
        """The viewer's executions without outputs, newest first."""
        return await self.database.read(lambda tx: executions.page(tx, viewer.id, before=before or MAX_ID, limit=limit))

    async def cancel_execution(self, viewer: Viewer, execution_id: str) -> ExecutionRow:
        """Cancel an execution; a finished one is not changed."""
        found = await self.get_execution(viewer, execution_id)
        await self.database.transact(
            lambda tx: self.jobs.cancel(tx, [found.job_id], actor=viewer.id, reason="canceled")
        )
        return await self.get_execution(viewer, execution_id)


def _check_inputs(stdins: Sequence[str], field: str) -> None:
    total = 0
    for stdin in stdins:
        if "\0" in stdin:
            raise InvalidInput(f"{field}: contains a NUL byte.", field=field)
        try:
            total += len(stdin.encode())
        except UnicodeEncodeError:
            raise InvalidInput(f"{field}: unpaired UTF-16 surrogate.", field=field) from None
    if total > _INPUT_BYTES:
        raise InvalidInput(f"{field}: {total} bytes exceed the total of {_INPUT_BYTES}.", field=field)
