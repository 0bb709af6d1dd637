"""Submitting solutions: checks them against the rules of their problem and stores them, one or a batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cachetools import LRUCache

from adjudge.blobs.driver import BlobStore
from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.problem import Problem, ProblemMode
from adjudge.judge.languages import Language, Languages
from adjudge.judge.pipeline import submission_limits
from adjudge.judge.sources import SourceFile
from adjudge.packages.problem_json import problem_from_json
from adjudge.packages.source_archive import FileLimits
from adjudge.services.admission import AdmissionController, AdmissionDecision, is_judging_paused
from adjudge.services.contest_submit import ContestSubmission, ContestSubmitCheck
from adjudge.services.submitted_files import StoredSource, store_outputs, store_program
from adjudge.services.viewer import Viewer
from adjudge.store import Database
from adjudge.store.jobs.models import HELD_DELAY_MS
from adjudge.store.judging import submit_batch
from adjudge.store.judging.models import NewSubmission, ProblemRef
from adjudge.store.judging.submit_batch import BatchedSubmit, SubmitBatcher, find_stored_response
from adjudge.store.ops.idempotency_keys import IdempotencyKey, StoredResponse

SMALL_BYTES: Final = 64 * 1024
"""Sources up to this size are stored in the database with the submission: one commit and no file to sync."""
_ACCEPTED: Final = 202
_KEY_MOST: Final = 255
_MAX_REVISIONS: Final = 256
_MARGIN_MS: Final = 60_000
_REPEATS: Final = 2
"""A run near its limit is repeated once."""


class SubmitRequest(NamedTuple):
    """A solution to submit: a source or files."""

    problem: str
    """A slug or id; in a contest also a label."""
    language: str
    """An id, alias or code; ignored for output files."""
    source: str = ""
    files: tuple[SourceFile, ...] = ()
    """Instead of ``source``; archives are unpacked."""
    entry_point: str = ""
    contest: str = ""
    """The slug or id of the contest that it is for; empty for none."""
    participant: str = ""
    """The code of the participant that an organiser submits for; empty for the own one."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The context of a request besides its viewer."""

    address: str = ""
    key: str | None = None
    """The idempotency key of the request."""
    trace_id: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class SubmitReply:
    """The response to a request, and when to ask for the result."""

    response: dict[str, Any]
    retry_after_sec: int = 0


@dataclass(frozen=True, slots=True)
class SubmissionRules:
    """What one revision requires: allowed languages, source size, and the time limit of judging."""

    problem_id: str
    revision_id: str
    problem: Problem
    deadlines_ms: dict[str, int] = field(default_factory=dict)
    """Cache of deadlines, by language."""

    def check_language(self, language: Language, field: str) -> None:
        """Reject a language that the problem does not allow."""
        allowed = self.problem.languages
        if not allowed:
            return
        if language.id not in allowed and language.code not in allowed:
            raise InvalidInput(
                f"{field}: {language.name} is not allowed for this problem; allowed: {', '.join(allowed)}.", field=field
            )

    def check_size(self, source_bytes: int, field: str) -> None:
        """Reject a source that is too long."""
        most = self.problem.limits.code_bytes
        if source_bytes > most:
            raise InvalidInput(f"{field}: {source_bytes} bytes exceed the limit of {most}.", field=field)

    def deadline_ms(self, language: Language | None) -> int:
        """The time limit of judging: the sum of all limits and a margin. Output files have no language."""
        name = language.id if language else ""
        known = self.deadlines_ms.get(name)
        if known is None:
            known = self.deadlines_ms[name] = self._deadline_ms(language)
        return known

    def _deadline_ms(self, language: Language | None) -> int:
        limits = self.problem.limits
        run_ms = submission_limits(self.problem, language).wall_ms * _REPEATS if language else 0
        test_ms = run_ms + limits.validation_ms
        runs = max(1, len(self.problem.cases)) * self.problem.max_passes
        return 2 * limits.compile_ms + runs * test_ms + _MARGIN_MS


class SubmissionRulesCache:
    """The rules of problems. Revisions never change, so rules are cached; the published revision is read every time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._refs: Batcher[str, ProblemRef | None] = Batcher(self._resolve, name="problem-refs", key=lambda ref: ref)
        self._by_revision: LRUCache[str, SubmissionRules] = LRUCache(_MAX_REVISIONS)

    async def find_problem(self, ref: str) -> ProblemRef | None:
        return await self._refs.put(ref)

    async def get(self, ref: str) -> SubmissionRules:
        """The rules of the published revision of a problem."""
        found = await self.find_problem(ref)
        if found is None or found.published_revision_id is None:
            raise NotFound("problem", ref)
        return await self.get_revision(found.id, found.published_revision_id)

    async def get_revision(self, problem_id: str, revision_id: str) -> SubmissionRules:
        """The rules of a revision, published or not."""
        rules = self._by_revision.get(revision_id)
        if rules is None:
            document = await self._database.read(lambda tx: submit_batch.find_definition(tx, revision_id))
            rules = SubmissionRules(problem_id, revision_id, problem_from_json(document))
            self._by_revision[revision_id] = rules
        return rules

    async def get_problems(self, revisions: Mapping[str, str]) -> dict[str, Problem]:
        """The packages of several revisions, by revision; given are the revisions with their problems."""
        missing = [item for item in revisions if item not in self._by_revision]
        if missing:
            found = await self._database.read(lambda tx: submit_batch.find_definitions(tx, missing))
            for revision_id, document in found.items():
                rules = SubmissionRules(revisions[revision_id], revision_id, problem_from_json(document))
                self._by_revision[revision_id] = rules
        known = {item: self._by_revision.get(item) for item in revisions}
        return {item: rules.problem for item, rules in known.items() if rules is not None}

    async def _resolve(self, refs: Sequence[str]) -> list[ProblemRef | None]:
        found = await self._database.read(lambda tx: submit_batch.resolve_problems(tx, refs))
        return [found.get(ref) for ref in refs]


@dataclass(frozen=True, slots=True)
class SubmitService:
    """Validates submissions, asks admission, and passes them to the batcher."""

    database: Database
    blobs: BlobStore
    languages: Languages
    admission: AdmissionController
    rules: SubmissionRulesCache
    batcher: SubmitBatcher
    file_limits: FileLimits
    contests: ContestSubmitCheck
    new_id: IdFactory = new_id

    async def submit(self, viewer: Viewer, request: SubmitRequest, caller: RequestContext) -> SubmitReply:
        return await self._submit(viewer, [request], caller, is_batch=False)

    async def submit_batch(
        self, viewer: Viewer, requests: Sequence[SubmitRequest], caller: RequestContext
    ) -> SubmitReply:
        """Submit several programs, all or none."""
        return await self._submit(viewer, requests, caller, is_batch=True)

    async def _submit(
        self, viewer: Viewer, requests: Sequence[SubmitRequest], caller: RequestContext, *, is_batch: bool
    ) -> SubmitReply:
        key = parse_idempotency_key(viewer, caller)
        digest = request_digest("submit", requests, is_batch) if key is not None else ""
        if key is not None:
            stored = await self.database.read(lambda tx: find_stored_response(tx, key))
            if stored is not None:
                return SubmitReply(dict(stored.check_request(digest).response))
        names = [f"items[{index}]." if is_batch else "" for index in range(len(requests))]
        places = await self._places(viewer, requests, names, caller)
        checked = [
            self._checked(item, *places[item.contest, item.problem, item.participant], name)
            for item, name in zip(requests, names, strict=True)
        ]
        languages = {item.language.id for item in checked if item.language is not None}
        admitted = await self.admission.admit(
            viewer,
            address=caller.address,
            count=len(checked),
            languages=languages,
            problem_ids=[item.rules.problem_id for item in checked],
        )
        await self._store_large_sources(checked)
        items = tuple(self._new(viewer, item, caller, admitted) for item in checked)
        answer = await self.batcher.submit(
            BatchedSubmit(items, StoredResponse(digest, _ACCEPTED, _response(items, is_batch=is_batch)), key)
        )
        return SubmitReply(dict(answer.response), admitted.retry_after_sec)

    async def _places(
        self, viewer: Viewer, requests: Sequence[SubmitRequest], names: Sequence[str], caller: RequestContext
    ) -> dict[tuple[str, str, str], tuple[SubmissionRules, ContestSubmission | None]]:
        """The rules of each contest, problem and participant, and where in the contest a submission counts."""
        found: dict[tuple[str, str, str], tuple[SubmissionRules, ContestSubmission | None]] = {}
        for item, name in zip(requests, names, strict=True):
            key = (item.contest, item.problem, item.participant)
            if key in found:
                continue
            place, rules = None, None
            if not item.contest and viewer.only_contest_id is not None:
                raise NotFound("problem", item.problem)
            if item.contest:
                place = await self.contests.check(
                    viewer,
                    item.contest,
                    item.problem,
                    participant=item.participant,
                    address=caller.address,
                    field=f"{name}problem",
                )
                rules = await self.rules.get_revision(place.problem_id, place.revision_id)
            found[key] = rules or await self.rules.get(item.problem), place
        return found

    def _checked(
        self, request: SubmitRequest, rules: SubmissionRules, place: ContestSubmission | None, name: str
    ) -> _ValidatedSubmission:
        if rules.problem.mode is ProblemMode.SUBMIT_ANSWER:
            return _ValidatedSubmission.of(None, rules, place, self._outputs(request, rules.problem, name))
        language = self._language(request.language, f"{name}language")
        rules.check_language(language, f"{name}language")
        if place is not None:
            place.check_language(language, self.languages, f"{name}language")
        if request.files or request.entry_point:
            field = f"{name}{'files' if request.files else 'source'}"
            files = request.files or (SourceFile(language.source, validate_source(request.source, field)),)
            stored = store_program(files, request.entry_point, language, self.file_limits, field)
        else:
            field = f"{name}source"
            source = validate_source(request.source, field)
            stored = StoredSource(source, len(source))
        rules.check_size(stored.size_bytes, field)
        return _ValidatedSubmission.of(language, rules, place, stored)

    def _language(self, name: str, field: str) -> Language:
        if not name:
            raise InvalidInput(f"{field}: missing; see `adjudge languages`.", field=field)
        return self.languages.get_offered(name, field)

    def _outputs(self, request: SubmitRequest, problem: Problem, name: str) -> StoredSource:
        if request.entry_point:
            field = f"{name}entry_point"
            raise InvalidInput(f"{field}: this problem takes output files, not a program; leave it out.", field=field)
        if request.files:
            return store_outputs(request.files, problem, self.file_limits, f"{name}files")
        text = validate_source(request.source, f"{name}source")
        return store_outputs((SourceFile("source", text),), problem, self.file_limits, f"{name}source")

    def _new(
        self, viewer: Viewer, item: _ValidatedSubmission, caller: RequestContext, admitted: AdmissionDecision
    ) -> NewSubmission:
        language = item.language.id if item.language else ""
        is_held = (item.place is not None and item.place.is_judging_paused) or is_judging_paused(
            admitted.pauses, language, item.rules.problem_id
        )
        return NewSubmission(
            id=self.new_id(),
            user_id=viewer.id,
            problem_id=item.rules.problem_id,
            revision_id=item.rules.revision_id,
            language=language,
            source_digest=item.digest,
            source_format=item.source.format,
            source_bytes=item.source.size_bytes,
            priority=admitted.band,
            timeout_ms=item.rules.deadline_ms(item.language),
            trace_id=caller.trace_id,
            request_id=caller.request_id,
            delay_ms=HELD_DELAY_MS if is_held else admitted.delay_ms,
            source_text=item.source.data.decode() if item.is_small else None,
            job_id=self.new_id(),
            contest_id=None if item.place is None else item.place.contest_id,
            participant_id=None if item.place is None else item.place.participant_id,
        )

    async def _store_large_sources(self, items: Sequence[_ValidatedSubmission]) -> None:
        """Store large sources before the transaction; blobs are content-addressed, so an unused one is harmless."""
        large = {item.digest: item.source.data for item in items if not item.is_small}
        for digest, source in large.items():
            await self.blobs.put(source, expected=digest)


class _ValidatedSubmission(NamedTuple):
    """A validated submission."""

    language: Language | None
    """None for output files."""
    rules: SubmissionRules
    place: ContestSubmission | None
    source: StoredSource
    digest: str

    @classmethod
    def of(
        cls, language: Language | None, rules: SubmissionRules, place: ContestSubmission | None, source: StoredSource
    ) -> _ValidatedSubmission:
        return cls(language, rules, place, source, hashlib.sha256(source.data).hexdigest())

    @property
    def is_small(self) -> bool:
        return len(self.source.data) <= SMALL_BYTES


def validate_source(text: str, field: str) -> bytes:
    """The bytes of a source. It must be text without NUL bytes or lone surrogates, which many tools reject."""
    if not text.strip():
        raise InvalidInput(f"{field}: must not be empty.", field=field)
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InvalidInput(f"{field}: NUL byte on line {line}.", field=field)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{field}: unpaired UTF-16 surrogate at character {error.start}.", field=field) from None


def _response(items: Sequence[NewSubmission], *, is_batch: bool) -> dict[str, Any]:
    made = [{"submission_id": item.id, "job_id": item.job_id, "status": "pending"} for item in items]
    return {"items": made} if is_batch else made[0]


def parse_idempotency_key(viewer: Viewer, caller: RequestContext) -> IdempotencyKey | None:
    if caller.key is None:
        return None
    if not 0 < len(caller.key) <= _KEY_MOST or not caller.key.isprintable():
        raise InvalidInput(f"Idempotency-Key: expected 1 to {_KEY_MOST} printable characters.", field="Idempotency-Key")
    return IdempotencyKey(viewer.id, caller.key)


def request_digest(kind: str, requests: Iterable[Sequence[Any]], is_batch: bool) -> str:
    """The digest of the values of the requests, by which a repeated request is recognized."""
    body = [kind, is_batch, [[*item] for item in requests]]
    return hashlib.sha256(json.dumps(body, default=_digest_part).encode()).hexdigest()


def _digest_part(file: SourceFile) -> list[str]:
    return [file.name, file.sha256]
