"""Evaluations: records of programs with tests, in bulk. Only their owner can read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.domain.errors import Conflict, InvalidInput, NotFound, StorageFull
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.evaluation.shapes import RecordShape
from adjudge.services.admission import PRACTICE_BAND, AdmissionController
from adjudge.services.evaluation_records import EvaluationRecordReader
from adjudge.services.submit import RequestContext
from adjudge.services.viewer import Viewer
from adjudge.settings.sections import ExecutionsSettings
from adjudge.store import Database, Tx
from adjudge.store.engine.driver import or_not_found
from adjudge.store.engine.notify import CHANNEL_JUDGING, Wakeup
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging import evaluations, executions
from adjudge.store.judging.evaluation_models import (
    EvaluationJobOptions,
    EvaluationResultRow,
    EvaluationRow,
    KnownRecord,
    NewEvaluationItem,
)
from adjudge.store.judging.queries import MAX_ID

NAME_CHARS: Final = 200
WAIT_MOST_SEC: Final = 60
RESULTS_MOST: Final = 1_000
_RETRIED_STATES: Final = ("failed", "canceled")
_CANCEL_JOBS: Final = 500
_STORAGE_RETRY_SEC: Final = 3_600
_PAUSE_SEC: Final = 0.1
"""Pause between two reads of a waiting request, however many results are stored meanwhile."""
_POLL_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class EvaluationAdded:
    """An evaluation after records were added to it."""

    evaluation: EvaluationRow
    added: int
    known: int
    """Records that it had already, with the same content."""
    retried: int
    """Known records that failed or were canceled, and are evaluated again."""


@dataclass(frozen=True, slots=True)
class EvaluationService:
    """Evaluations of the viewer."""

    database: Database
    jobs: JobCommands
    reader: EvaluationRecordReader
    settings: ExecutionsSettings
    admission: AdmissionController
    new_id: IdFactory = new_id

    async def create_evaluation(
        self,
        viewer: Viewer,
        name: str,
        pieces: AsyncIterable[bytes],
        caller: RequestContext,
        *,
        shape: RecordShape | None = None,
    ) -> EvaluationAdded:
        """Create the evaluation ``name``, or continue it, and add the records of a body (all or none)."""
        if not 0 < len(name) <= NAME_CHARS or not name.isprintable():
            raise InvalidInput(f"name: expected 1 to {NAME_CHARS} printable characters.", field="name")
        items = await self.reader.read(viewer, pieces, shape)
        found = await self.database.read(lambda tx: evaluations.find_by_name(tx, viewer.id, name))
        return await self._add(viewer, found.id if found else None, name, items, caller, creates=True)

    async def add_records(
        self,
        viewer: Viewer,
        evaluation_id: str,
        pieces: AsyncIterable[bytes],
        caller: RequestContext,
        *,
        shape: RecordShape | None = None,
    ) -> EvaluationAdded:
        """Add the records of a body to an evaluation (all or none)."""
        found = await self._find(viewer, evaluation_id)
        items = await self.reader.read(viewer, pieces, shape)
        return await self._add(viewer, found.id, found.name, items, caller, creates=False)

    async def _add(
        self,
        viewer: Viewer,
        evaluation_id: str | None,
        name: str,
        items: Mapping[str, NewEvaluationItem],
        caller: RequestContext,
        *,
        creates: bool,
    ) -> EvaluationAdded:
        ids, ttl_ms = list(items), self.settings.keep_sec * 1_000
        known: dict[str, KnownRecord] = {}
        if evaluation_id is not None:
            known = await self.database.read(lambda tx: evaluations.find_known(tx, evaluation_id, ids))
        wanted = [*_without_known(items, known), *_to_retry(items, known)]
        options = EvaluationJobOptions(viewer.id, PRACTICE_BAND, 0, caller.trace_id, caller.request_id)
        if wanted:
            languages = {item.language for item in wanted}
            admitted = await self.admission.admit(
                viewer, address=caller.address, count=len(wanted), languages=languages
            )
            options = EvaluationJobOptions(
                viewer.id, PRACTICE_BAND, admitted.delay_ms, caller.trace_id, caller.request_id
            )
        fresh_id = self.new_id()

        async def add(tx: Tx) -> EvaluationAdded:
            kept_bytes = await executions.kept_bytes(tx, viewer.id)
            found = await evaluations.find_by_name(tx, viewer.id, name)
            if found is None and creates:
                await evaluations.create(tx, fresh_id, viewer.id, name, ttl_ms=ttl_ms)
            target = found.id if found else fresh_id if creates else str(evaluation_id)
            await evaluations.lock(tx, target)
            known = await evaluations.find_known(tx, target, ids)
            new, again = _without_known(items, known), _to_retry(items, known)
            if new and not viewer.can(Permission.SUBMISSION_UNLIMITED):
                self._check_quota(kept_bytes, sum(len(item.record) for item in new))
            if not await evaluations.add(tx, self.jobs, target, new, options, ttl_ms=ttl_ms, new_id=self.new_id):
                raise NotFound("evaluation", target)
            await evaluations.retry(tx, self.jobs, target, again, options, ttl_ms=ttl_ms, new_id=self.new_id)
            row = or_not_found(await evaluations.find(tx, target, viewer.id), "evaluation", target)
            return EvaluationAdded(row, len(new), len(items) - len(new), len(again))

        return await self.database.transact(add)

    def _check_quota(self, kept_bytes: int, wanted: int) -> None:
        most = self.settings.user_bytes
        if most and kept_bytes + wanted > most:
            raise StorageFull(
                f"Your executions and evaluations take {kept_bytes} bytes, and these records {wanted} more; at most "
                f"{most} (executions.user_bytes) are kept. Records are removed when they have a result, and the "
                "oldest evaluations in time (executions.keep_sec).",
                limit=most,
                retry_after_sec=_STORAGE_RETRY_SEC,
            )

    async def list_evaluations(self, viewer: Viewer, *, before: str | None, limit: int) -> list[EvaluationRow]:
        """The viewer's evaluations, newest first."""
        return await self.database.read(
            lambda tx: evaluations.page(tx, viewer.id, before=before or MAX_ID, limit=limit)
        )

    async def get_evaluation(self, viewer: Viewer, evaluation_id: str) -> tuple[EvaluationRow, dict[str, int]]:
        """An evaluation and the number of its records by verdict."""

        async def read(tx: Tx) -> tuple[EvaluationRow, dict[str, int]]:
            found = or_not_found(await evaluations.find(tx, evaluation_id, viewer.id), "evaluation", evaluation_id)
            return found, await evaluations.count_verdicts(tx, evaluation_id)

        return await self.database.read(read)

    async def list_results(
        self, viewer: Viewer, evaluation_id: str, *, after: int, limit: int, wait_sec: float
    ) -> list[EvaluationResultRow]:
        """Results with a number greater than ``after``.

        If there are none but records are pending, waits up to ``wait_sec`` for one.
        """
        until = asyncio.get_running_loop().time() + min(wait_sec, WAIT_MOST_SEC)
        wakeup = Wakeup()

        async def read(tx: Tx) -> tuple[EvaluationRow, list[EvaluationResultRow]]:
            found = or_not_found(await evaluations.find(tx, evaluation_id, viewer.id), "evaluation", evaluation_id)
            return found, await evaluations.page_results(tx, evaluation_id, after=after, limit=limit)

        unlisten = self.database.listen(CHANNEL_JUDGING, wakeup.set)
        try:
            while True:
                wakeup.clear()
                found, results = await self.database.read(read)
                left_sec = until - asyncio.get_running_loop().time()
                if results or found.finished == found.total or left_sec <= 0:
                    return results
                await asyncio.sleep(min(_PAUSE_SEC, left_sec))
                await wakeup.wait(min(_POLL_MS, max(1, round(left_sec * 1_000))))
        finally:
            unlisten()

    async def cancel_evaluation(self, viewer: Viewer, evaluation_id: str) -> tuple[EvaluationRow, dict[str, int]]:
        """Cancel all unfinished records; finished ones are not changed."""
        await self._find(viewer, evaluation_id)

        async def cancel(tx: Tx) -> int:
            job_ids = await evaluations.open_jobs(tx, evaluation_id, limit=_CANCEL_JOBS)
            if not job_ids:
                return 0
            return len((await self.jobs.cancel(tx, job_ids, actor=viewer.id, reason="canceled")).done)

        while await self.database.transact(cancel):
            pass
        return await self.get_evaluation(viewer, evaluation_id)

    async def _find(self, viewer: Viewer, evaluation_id: str) -> EvaluationRow:
        found = await self.database.read(lambda tx: evaluations.find(tx, evaluation_id, viewer.id))
        return or_not_found(found, "evaluation", evaluation_id)


def _to_retry(
    items: Mapping[str, NewEvaluationItem], known: Mapping[str, KnownRecord]
) -> dict[NewEvaluationItem, KnownRecord]:
    """The records that failed or were canceled: to send them again is to ask for them again."""
    return {items[key]: found for key, found in known.items() if found.state in _RETRIED_STATES}


def _without_known(
    items: Mapping[str, NewEvaluationItem], known: Mapping[str, KnownRecord]
) -> Sequence[NewEvaluationItem]:
    """The records that are not there yet; one with the same id and another content is refused."""
    for record_id, found in known.items():
        if items[record_id].digest != found.digest:
            raise Conflict(
                f"id: record {record_id!r} is in the evaluation with other content (SHA-256 {found.digest[:12]}, sent "
                f"{items[record_id].digest[:12]}); give it another id, or the evaluation another name.",
                field="id",
            )
    return [item for item in items.values() if item.record_id not in known]
