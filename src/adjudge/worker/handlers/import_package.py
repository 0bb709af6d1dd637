"""Handler of imports: creates a revision from an archive, or verifies a revision with its jury solutions.

Errors in a package are findings of the import: the job succeeds, and the import shows where and why. Transient failures
(file store unavailable, sandbox cannot start) are retried.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.judge.pipeline import Judge
from adjudge.packages.archive import open_package
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Finding, Findings, PackageRefused, Severity
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, check_test_files, default_name, read_package
from adjudge.packages.problem_json import encode
from adjudge.packages.storing import new_revision, store_package_files
from adjudge.packages.verifier import Verifier, verification_to_json
from adjudge.services.package_import import PackageMetadata, new_problem, open_revision
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.problems import imports
from adjudge.store.problems.imports import ImportResult, ImportRow
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.progress import NULL_PROGRESS_REPORTER, ProgressReporter, ProgressWriter


class ProblemImportHandler:
    """Imports packages and verifies revisions."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        cache: BlobCache,
        judge: Judge,
        *,
        slots: int = 1,  # how many solutions are judged side by side: never all, so that submissions get through
        board: ProgressWriter | None = None,
        new_id: IdFactory = new_id,
    ) -> None:
        self._database, self._blobs, self._cache, self._judge = database, blobs, cache, judge
        self._slots, self._board, self._new_id = slots, board, new_id

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG002  # it is the same for all
        return ()

    async def run(self, job: Job) -> HandlerResult:
        import_id = str(job.payload["import_id"])
        row = await self._database.read(lambda tx: imports.find(tx, import_id))
        reporter = self._board.reporter(job) if self._board else NULL_PROGRESS_REPORTER
        try:
            if row.purpose == "verify":
                found = await self._verify_again(row, reporter)
            else:
                found = await self._import(row, reporter)
        except PackageRefused as refusal:
            found = ImportResult(findings=_findings(refusal.findings), error="The package has errors.")
        except (InvalidInput, NotFound) as error:
            found = ImportResult(error=error.message)
        return HandlerResult(result={"ok": found.error is None}, typed_result=found)

    async def _import(self, row: ImportRow, reporter: ProgressReporter) -> ImportResult:
        if row.archive_digest is None:
            raise NotFound("archive", row.id)
        async with AsyncExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-import-")))
            archive = scratch / "package.zip"
            reporter.report("fetching")
            await self._blobs.fetch_to(row.archive_digest, archive)
            reporter.report("reading")
            files = await asyncio.to_thread(stack.enter_context, open_package(archive, None, scratch))
            package = await asyncio.to_thread(_read, files, _name(row))
            if package.generated_files:
                reporter.report("generating_tests", 0, len(package.generated_files))
            package = await generate_missing_files(package, self._judge)
            return await self._kept(row, package, reporter)

    async def _kept(self, row: ImportRow, package: Package, reporter: ProgressReporter) -> ImportResult:
        """Verify a package if requested, and store its files."""
        problem, findings = new_problem(package, row.created_by, _metadata(row), self._new_id), list(package.findings)
        await asyncio.to_thread(_digest, package.files)
        jury = await self._judged(package, reporter) if row.requested.get("verify") else None
        is_sound = jury is None or bool(jury["ok"])
        if row.requested.get("publish") and not is_sound:
            message = "Not published: some jury solutions did not meet their expectations."
            findings.append(
                Finding(
                    Severity.WARNING,
                    "",
                    0,
                    message,
                    "Check their results, then publish the revision.",
                )
            )
        reporter.report("storing", 0, len(package.files.names()))
        stored = await store_package_files(self._blobs, package)
        return ImportResult(
            findings=_findings(findings),
            jury=jury,
            problem=problem,
            revision=new_revision(
                package, stored, problem_id=problem.id, created_by=row.created_by, new_id=self._new_id
            ),
            may_edit_others_problems=bool(row.requested.get("may_change_others")),
            publish_after_import=bool(row.requested.get("publish")) and is_sound,
        )

    async def _verify_again(self, row: ImportRow, reporter: ProgressReporter) -> ImportResult:
        if row.revision_id is None:
            raise NotFound("revision", row.id)
        async with open_revision(self._database, self._cache, row.revision_id) as package:
            return ImportResult(jury=await self._judged(package, reporter))

    async def _judged(self, package: Package, reporter: ProgressReporter) -> dict[str, Any]:
        verifier = Verifier(self._judge, package, self._slots, reporter.report)
        return verification_to_json(package.problem, await verifier.run())


def _metadata(row: ImportRow) -> PackageMetadata:
    return PackageMetadata(*(row.requested.get(name) for name in ("slug", "title", "tags", "difficulty")))


def _name(row: ImportRow) -> str:
    """The slug of a package without its own: the requested one, otherwise from its file name."""
    return str(row.requested.get("slug") or default_name(Path(row.file_name or "problem.zip")))


def _read(files: PackageFiles, name: str) -> Package:
    """Read and check every test, so that all findings are reported at once."""
    findings = Findings()
    package = read_package(files, name, findings)
    if not findings.has_errors:
        check_test_files(package, findings)
    if findings.has_errors:
        raise PackageRefused(findings)
    return Package(package.problem, package.files, findings.in_order(), package.generated_files)


def _digest(files: PackageFiles) -> None:
    """Read every file once, outside the event loop, so that later digests come from the cache."""
    for name in files.names():
        files.sha256(name)


def _findings(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [encode(item) for item in findings]
