"""A revision as contestants see it: statement, limits, samples and public files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from adjudge.blobs.driver import BlobStore
from adjudge.domain.problem import Problem, ProblemMode, ProblemStatement
from adjudge.domain.programs import CheckerProtocol
from adjudge.judge.languages import Languages
from adjudge.judge.pipeline import submission_limits
from adjudge.packages.statement_html import render_statement
from adjudge.store.problems.models import ProblemRow, RevisionFileRow, RevisionRow

_SAMPLE_BYTES: Final = 16 * 1024
_SAMPLES: Final = 20
STATEMENT_BYTES: Final = 128 * 1024
"""Longer statements are not rendered; the original can be downloaded."""
_SHOWN_FORMATS: Final = ("md", "html", "tex", "txt")
_RANK: Final = {kind: rank for rank, kind in enumerate((*_SHOWN_FORMATS, "pdf"))}


@dataclass(frozen=True, slots=True)
class SampleText:
    """A sample test."""

    name: str
    input: str
    output: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class LanguageLimit:
    """An allowed language and its limits."""

    id: str
    name: str
    time_ms: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class DefaultLimits:
    """The limits of the problem, before those of languages."""

    time_ms: int
    memory_bytes: int
    output_bytes: int
    code_bytes: int


@dataclass(frozen=True, slots=True)
class StatementText:
    """The statement in one language, as sanitized HTML."""

    language: str
    format: str
    html: str
    url: str | None
    languages: list[str]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A public attachment."""

    name: str
    size_bytes: int
    url: str


@dataclass(frozen=True, slots=True)
class ScoredGroup:
    """A test group with points."""

    name: str
    points: float | None
    tests: int


@dataclass(frozen=True, slots=True)
class ComparatorInfo:
    """A built-in comparator with its arguments."""

    kind: str
    args: list[str]
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class ProblemDetail:
    """A problem as contestants see it."""

    id: str
    slug: str
    title: str
    tags: list[str]
    difficulty: float | None
    version: int
    state: str
    revision: int
    revision_id: str
    grading: str
    mode: str
    limits: DefaultLimits
    languages: list[LanguageLimit]
    input_file: str
    output_file: str
    output_names: list[str]
    """The names of the output files of an output-only problem, one per test; empty for others."""
    tests: int
    groups: list[ScoredGroup]
    samples: list[SampleText]
    comparator: ComparatorInfo | None
    """None: a program of the jury decides."""
    statement: StatementText | None
    attachments: list[Attachment]
    authors: list[str]
    source: str
    license: str
    updated_at: int


@dataclass(frozen=True, slots=True)
class ProblemRevision:
    """The input for a problem page."""

    row: ProblemRow
    revision: RevisionRow
    problem: Problem
    files: Mapping[str, RevisionFileRow]
    file_root: str = ""
    """Where its files are; by default under the problem itself."""


def public_files(problem: Problem) -> dict[str, str]:
    """Public name → path in the package, of all files that contestants may download."""
    found = {ref.name: ref.path for ref in problem.attachments}
    for statement in problem.statements:
        found |= {ref.name: ref.path for ref in statement.assets}
        found.setdefault(statement_name(statement), statement.path)
    return found


def statement_name(statement: ProblemStatement) -> str:
    """The public name of a statement."""
    return f"problem.{statement.language}.{statement.format}"


async def build_problem_detail(
    blobs: BlobStore, facts: ProblemRevision, languages: tuple[str, ...], known: Languages
) -> ProblemDetail:
    """Build the detail; files are read from the blob store, limits are listed for the ``known`` languages."""
    row, problem, run = facts.row, facts.problem, facts.problem.limits.run
    is_current = row.published_revision_id == facts.revision.id
    return ProblemDetail(
        id=row.id,
        slug=row.slug,
        title=_title(facts, languages),
        tags=list(row.tags),
        difficulty=row.difficulty,
        version=row.version,
        state="published" if is_current else "draft",
        revision=facts.revision.number,
        revision_id=facts.revision.id,
        grading=problem.grading.value,
        mode=problem.mode.value,
        limits=DefaultLimits(
            time_ms=run.cpu_ms,
            memory_bytes=run.memory_bytes,
            output_bytes=run.output_bytes,
            code_bytes=problem.limits.code_bytes,
        ),
        languages=_languages(problem, known),
        input_file=problem.input_file,
        output_file=problem.output_file,
        output_names=[case.submitted_name for case in problem.cases]
        if problem.mode is ProblemMode.SUBMIT_ANSWER
        else [],
        tests=len(problem.cases),
        groups=_groups(problem),
        samples=await _samples(blobs, facts),
        comparator=_comparator(problem),
        statement=await _statement(blobs, facts, languages),
        attachments=_attachments(facts),
        authors=list(problem.credits.get("authors", ())),
        source=problem.sources[0].name if problem.sources else "",
        license=problem.license,
        updated_at=row.updated_at,
    )


def _comparator(problem: Problem) -> ComparatorInfo | None:
    checker = problem.checker
    if problem.interactor is not None or checker.protocol is not CheckerProtocol.NATIVE:
        return None
    sample = next((case for case in problem.cases if case.is_sample), None)
    args = (*checker.args, *(sample.checker_args if sample else ()))
    return ComparatorInfo(checker.native.value, list(args), dict(checker.options))


def _title(facts: ProblemRevision, languages: tuple[str, ...]) -> str:
    """The title in the metadata, unless the package has one in a requested language."""
    titles = facts.problem.titles
    if facts.row.title != facts.problem.title:
        return facts.row.title
    return next((titles[code] for code in languages if code in titles), facts.row.title)


def _languages(problem: Problem, known: Languages) -> list[LanguageLimit]:
    if problem.mode is ProblemMode.SUBMIT_ANSWER:
        return []
    allowed = problem.languages
    return [
        LanguageLimit(id=language.id, name=language.name, time_ms=limits.cpu_ms, memory_bytes=limits.memory_bytes)
        for language in known.offered()
        if not allowed or language.id in allowed or language.code in allowed
        for limits in (submission_limits(problem, language),)
    ]


def _groups(problem: Problem) -> list[ScoredGroup]:
    if not problem.is_scored:
        return []
    return [
        ScoredGroup(name=group.path or "all", points=group.max_points, tests=tests)
        for group in problem.groups
        for tests in (sum(case.group == group.path for case in problem.cases),)
        if tests or group.max_points is not None
    ]


async def _samples(blobs: BlobStore, facts: ProblemRevision) -> list[SampleText]:
    found = []
    for case in [case for case in facts.problem.cases if case.is_sample][:_SAMPLES]:
        given, given_cut = await _read_prefix(blobs, facts.files.get(case.input))
        answer, answer_cut = await _read_prefix(blobs, facts.files.get(case.answer or ""))
        found.append(SampleText(name=case.name, input=given, output=answer, is_cut=given_cut or answer_cut))
    return found


async def _read_prefix(blobs: BlobStore, file: RevisionFileRow | None) -> tuple[str, bool]:
    if file is None:
        return "", False
    data = await read_text(blobs, file, _SAMPLE_BYTES)
    return data, file.size_bytes > _SAMPLE_BYTES


async def read_text(blobs: BlobStore, file: RevisionFileRow, max_bytes: int) -> str:
    """The first bytes of a file as text; invalid UTF-8 is replaced."""
    data = bytearray()
    async with aclosing(blobs.open(file.digest)) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) >= max_bytes:
                break
    return bytes(data[:max_bytes]).decode("utf-8", "replace").replace("\0", "\ufffd")


async def _statement(blobs: BlobStore, facts: ProblemRevision, languages: tuple[str, ...]) -> StatementText | None:
    chosen = _select_statement(facts.problem.statements, languages)
    if chosen is None:
        return None
    names = {ref.name for ref in chosen.assets} | {ref.name for ref in facts.problem.attachments}

    def locate(name: str) -> str | None:
        plain = name.removeprefix("./")
        return _url(facts, plain) if plain in names else None

    file = facts.files.get(chosen.path)
    html = ""
    if chosen.format in _SHOWN_FORMATS and file is not None and file.size_bytes <= STATEMENT_BYTES:
        text = await read_text(blobs, file, STATEMENT_BYTES)
        html = await asyncio.to_thread(render_statement, text, chosen.format, locate)
    return StatementText(
        language=chosen.language,
        format=chosen.format,
        html=html,
        url=None if html else _url(facts, statement_name(chosen)),
        languages=sorted({statement.language for statement in facts.problem.statements}),
    )


def _select_statement(statements: tuple[ProblemStatement, ...], languages: tuple[str, ...]) -> ProblemStatement | None:
    """The first requested language that exists, else English, else any; in a format that can be shown."""
    wanted = [*languages, "en"]

    def rank(statement: ProblemStatement) -> tuple[int, int]:
        code = statement.language.partition("-")[0].lower()
        return wanted.index(code) if code in wanted else len(wanted), _RANK.get(statement.format, len(_RANK))

    return min(statements, key=rank, default=None)


def _attachments(facts: ProblemRevision) -> list[Attachment]:
    return [
        Attachment(name=ref.name, size_bytes=facts.files[ref.path].size_bytes, url=_url(facts, ref.name))
        for ref in facts.problem.attachments
        if ref.path in facts.files
    ]


def _url(facts: ProblemRevision, name: str) -> str:
    root = facts.file_root or f"/api/v1/problems/{facts.row.slug}/files"
    return f"{root}/{quote(name)}"
