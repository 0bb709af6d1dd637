"""Pauses and resumes judging (everything, a language, a problem), and pauses, resumes and drains workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.contests.judging_pause import apply_holds
from adjudge.domain.errors import Conflict, InvalidInput, NotFound
from adjudge.judge.languages import Languages
from adjudge.registry.driver import LiveProcess, ProcessRole, Registry
from adjudge.store import Database, Tx
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.ops import audit_log, judging_pauses, worker_controls
from adjudge.store.ops.judging_pauses import JudgingPauseRow, PauseScope
from adjudge.store.ops.worker_controls import WorkerControlRow
from adjudge.store.problems import queries as problem_queries

WorkerAction = Literal["pause", "resume", "drain"]


@dataclass(frozen=True, slots=True)
class JudgingPause:
    """A pause in force, with the name that people know its subject by."""

    row: JudgingPauseRow
    subject: str
    """The language, or the slug of the problem; empty for everything."""


@dataclass(frozen=True, slots=True)
class JudgingControlService:
    """Control of judging for operators. Submissions are accepted meanwhile; their judge runs wait."""

    database: Database
    jobs: JobCommands
    registry: Registry
    languages: Languages

    async def list_pauses(self) -> list[JudgingPause]:
        """The pauses in force."""

        async def read(tx: Tx) -> list[JudgingPause]:
            found = []
            for row in await judging_pauses.list_all(tx):
                problem = await problem_queries.find(tx, row.subject) if row.scope == "problem" else None
                found.append(JudgingPause(row, row.subject if problem is None else problem.slug))
            return found

        return await self.database.read(read)

    async def pause(self, actor: str, scope: PauseScope, subject: str, *, reason: str) -> None:
        """Pause judging; a pause in force is a conflict. Runs that have begun are finished."""

        async def operation(tx: Tx) -> None:
            key = await self._find_subject(tx, scope, subject)
            if not await judging_pauses.insert(tx, scope, key, actor=actor, reason=_reason(reason)):
                raise Conflict(f"{_name(scope, subject)} is paused already.")
            await _record(tx, actor, "judging.pause", scope, subject, reason=reason)

        await self.database.transact(operation)
        await apply_holds(self.database, self.jobs, actor=actor)

    async def resume(self, actor: str, scope: PauseScope, subject: str, *, reason: str) -> None:
        """Resume judging; what waited is judged in its order, unless another pause concerns it."""

        async def operation(tx: Tx) -> None:
            key = await self._find_subject(tx, scope, subject)
            if not await judging_pauses.delete(tx, scope, key):
                raise Conflict(f"{_name(scope, subject)} is not paused.")
            await _record(tx, actor, "judging.resume", scope, subject, reason=reason)

        await self.database.transact(operation)
        await apply_holds(self.database, self.jobs, actor=actor)

    async def list_worker_controls(self) -> dict[str, WorkerControlRow]:
        """Orders to workers, by the name of the worker."""
        return {row.worker: row for row in await self.database.read(worker_controls.list_all)}

    async def control_worker(self, actor: str, name: str, action: WorkerAction, *, reason: str) -> None:
        """Order a worker to start no more jobs (``pause``), to start jobs again, or to finish its jobs and end."""
        if action != "resume":
            await self._check_worker(name, action)

        async def operation(tx: Tx) -> None:
            if action == "resume":
                if not await worker_controls.delete(tx, name):
                    raise Conflict(f"Worker {name!r} is not paused.")
            else:
                await worker_controls.set_mode(tx, name, action, actor=actor, reason=_reason(reason))
            await audit_log.record(
                tx,
                actor=actor,
                action=f"worker.{action}",
                object_kind="worker",
                objects=[name],
                reason=_reason(reason),
            )

        await self.database.transact(operation)

    async def _check_worker(self, name: str, action: WorkerAction) -> None:
        alive = await self.registry.list()
        worker = next((it for it in alive if it.info.name == name and it.info.role is ProcessRole.WORKER), None)
        if worker is None:
            raise NotFound("worker", name)
        if action == "drain" and _is_embedded(worker, alive):
            raise Conflict(
                f"Worker {name!r} runs in the same process as an API server; pause it, or stop the whole process."
            )

    async def _find_subject(self, tx: Tx, scope: PauseScope, subject: str) -> str:
        """The key of the subject; an unknown language or problem is refused."""
        if scope == "all":
            if subject:
                raise InvalidInput("subject: must be empty if the scope is all.", field="subject")
            return ""
        if not subject:
            raise InvalidInput(f"subject: required; name the {scope}.", field="subject")
        if scope == "language":
            return self.languages.get(subject).id
        problem = await problem_queries.find(tx, subject)
        if problem is None:
            raise NotFound("problem", subject)
        return problem.id


def _is_embedded(worker: LiveProcess, alive: list[LiveProcess]) -> bool:
    place = (worker.info.host, worker.info.pid)
    return any(it.info.role is ProcessRole.API and (it.info.host, it.info.pid) == place for it in alive)


def _reason(text: str) -> str:
    if not text.strip():
        raise InvalidInput("reason: required.", field="reason")
    return text.strip()


def _name(scope: PauseScope, subject: str) -> str:
    return "All judging" if scope == "all" else f"Judging of the {scope} {subject!r}"


async def _record(tx: Tx, actor: str, action: str, scope: PauseScope, subject: str, *, reason: str) -> None:
    await audit_log.record(
        tx,
        actor=actor,
        action=action,
        object_kind="judging",
        objects={scope: {"subject": subject}},
        reason=_reason(reason),
    )
