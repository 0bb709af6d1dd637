"""The Judge0-compatible API on executions: creating, reading, and what clients ask about the installation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge import __version__
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.judge.languages import Languages
from adjudge.services.executions import WAIT_MOST_SEC, ExecutionRequest, ExecutionService
from adjudge.services.judge0_languages import Judge0Language, list_judge0_languages
from adjudge.services.judge0_request import BATCH_MAX, EXTRACT_BYTES, Errors, number_rules, read_submission
from adjudge.services.judge0_response import needs_task, render
from adjudge.services.ops import OpsService
from adjudge.services.submit import RequestContext
from adjudge.services.viewer import Viewer
from adjudge.settings.sections import ExecutionsSettings
from adjudge.store.judging.execution_models import ExecutionRow
from adjudge.store.judging.executions import CALLBACK_ATTEMPTS

API_VERSION: Final = "1.13.1"
"""Clients choose their table of language ids by this version; ids of 1.14.0 are accepted as well."""
CALLBACK_TIMEOUT_SEC: Final = 5.0


@dataclass(frozen=True, slots=True)
class Judge0Page:
    """One page of submissions."""

    submissions: list[dict[str, Any]]
    page: int
    pages: int
    count: int

    def meta(self) -> dict[str, Any]:
        return {
            "current_page": self.page,
            "next_page": self.page + 1 if self.page < self.pages else None,
            "prev_page": self.page - 1 if self.page > 1 else None,
            "total_pages": self.pages,
            "total_count": self.count,
        }


class InvalidSubmission(InvalidInput):
    """A submission of the Judge0 API is invalid."""

    def __init__(self, errors: Errors) -> None:
        super().__init__("; ".join(f"{name}: {', '.join(messages)}" for name, messages in errors.items()))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Judge0Service:
    """Submissions of the Judge0 API; each is an execution of the viewer."""

    executions: ExecutionService
    languages: Languages
    settings: ExecutionsSettings
    ops: OpsService

    def list_languages(self) -> list[Judge0Language]:
        return list_judge0_languages(self.languages)

    def get_language(self, language_id: int) -> Judge0Language:
        for item in self.list_languages():
            if item.id == language_id:
                return item
        raise NotFound("language", str(language_id))

    async def create(
        self, viewer: Viewer, document: object, caller: RequestContext, *, is_base64: bool, is_awaited: bool
    ) -> ExecutionRow:
        """Create one submission; ``is_awaited`` waits for its result, up to a minute."""
        (read,) = self._read([document], is_base64=is_base64)
        if not isinstance(read, ExecutionRequest):
            raise InvalidSubmission(read)
        wait_sec = WAIT_MOST_SEC if is_awaited else 0
        (created,) = await self.executions.create_executions(viewer, [read], caller, wait_sec=wait_sec)
        return created

    async def create_batch(
        self, viewer: Viewer, documents: Sequence[object], caller: RequestContext, *, is_base64: bool
    ) -> list[str | Errors]:
        """Create the valid ones of a batch; for each the token, or what is wrong with it."""
        read = self._read(documents, is_base64=is_base64)
        requests = [item for item in read if isinstance(item, ExecutionRequest)]
        created = iter(
            await self.executions.create_executions(viewer, requests, caller, wait_sec=0, is_batch=True)
            if requests
            else ()
        )
        return [next(created).id if isinstance(item, ExecutionRequest) else item for item in read]

    def _read(self, documents: Sequence[object], *, is_base64: bool) -> list[ExecutionRequest | Errors]:
        languages = {item.id: item for item in self.list_languages()}
        rules = number_rules(self.settings)
        return [read_submission(document, languages, rules, is_base64=is_base64) for document in documents]

    async def show(
        self, viewer: Viewer, execution: ExecutionRow, fields: Sequence[str], *, is_base64: bool
    ) -> dict[str, Any]:
        """A submission as its client reads it."""
        task = await self.executions.find_task(viewer, execution.id) if needs_task(fields) else None
        return render(execution, self.language_name(execution), fields, is_base64=is_base64, task=task)

    async def read(self, viewer: Viewer, token: str, fields: Sequence[str], *, is_base64: bool) -> dict[str, Any]:
        return await self.show(viewer, await self._get(viewer, token), fields, is_base64=is_base64)

    async def _get(self, viewer: Viewer, token: str) -> ExecutionRow:
        found = await self.executions.get_execution(viewer, token)
        if found.client_data is None:
            raise NotFound("execution", token)
        return found

    async def read_batch(
        self, viewer: Viewer, tokens: Sequence[str], fields: Sequence[str], *, is_base64: bool
    ) -> list[dict[str, Any] | None]:
        """Submissions in the order of the tokens; None for unknown ones."""
        found = await self.executions.find_executions(viewer, tokens)
        known = {token: row for token, row in found.items() if row.client_data is not None}
        shown = {token: await self.show(viewer, row, fields, is_base64=is_base64) for token, row in known.items()}
        return [shown.get(token) for token in tokens]

    async def list_page(
        self, viewer: Viewer, fields: Sequence[str], *, page: int, per_page: int, is_base64: bool
    ) -> Judge0Page:
        """One page of the viewer's submissions, newest first."""
        rows, count = await self.executions.page_of_client(viewer, page=page, limit=per_page)
        shown = [await self.show(viewer, row, fields, is_base64=is_base64) for row in rows]
        return Judge0Page(shown, page, max(1, -(-count // per_page)), count)

    def language_name(self, execution: ExecutionRow) -> str:
        return self.languages.get(execution.language).name

    async def list_workers(self) -> list[dict[str, Any]]:
        """The workers as one queue, as Judge0 shows its own."""
        workers = await self.ops.list_workers()
        queues, running = await self.ops.get_queue_status()
        slots = sum(worker.info.slots for worker in workers)
        return [
            {
                "queue": "default",
                "size": sum(queue.waiting for queue in queues),
                "available": slots,
                "idle": max(0, slots - running),
                "working": min(slots, running),
                "paused": 0,
                "failed": 0,
            }
        ]

    def config(self) -> Mapping[str, Any]:
        """``/config_info``: every key that clients read."""
        rules = number_rules(self.settings)
        maxima = {f"max_{name}": _number(rule.maximum, rule.is_integer) for name, rule in rules.items()}
        defaults = {name: _number(rule.default, rule.is_integer) for name, rule in rules.items()}
        compiled = [item.language.name for item in self.list_languages() if item.has_compiler_options]
        return {
            **defaults,
            **maxima,
            "maintenance_mode": False,
            "enable_wait_result": True,
            "enable_compiler_options": True,
            "allowed_languages_for_compile_options": list(dict.fromkeys(compiled)),
            "enable_command_line_arguments": True,
            "enable_submission_delete": False,
            "enable_callbacks": True,
            "callbacks_max_tries": CALLBACK_ATTEMPTS,
            "callbacks_timeout": CALLBACK_TIMEOUT_SEC,
            "enable_additional_files": True,
            "max_queue_size": 1_000_000,
            "enable_per_process_and_thread_time_limit": False,
            "enable_per_process_and_thread_memory_limit": False,
            "allow_enable_per_process_and_thread_time_limit": False,
            "allow_enable_per_process_and_thread_memory_limit": False,
            "redirect_stderr_to_stdout": False,
            "max_extract_size": EXTRACT_BYTES // 1_024,
            "enable_batched_submissions": True,
            "max_submission_batch_size": BATCH_MAX,
            "submission_cache_duration": 0,
            "use_docs_as_homepage": False,
            "enable_network": False,
            "allow_enable_network": False,
        }

    def about(self) -> dict[str, str]:
        return {"version": API_VERSION, "maintainer": "Adjudge", "adjudge_version": __version__}


def _number(value: float, is_integer: bool) -> float:
    return int(value) if is_integer else float(value)
