"""Imports contest packages: first a preview, then all or nothing.

A package becomes a new contest. If the contest with its slug has everything that the package says, nothing is written;
if it differs, or if the viewer is no organiser of it, the import is refused. Only administrators may import what
happened in a contest (submissions and clarifications): it is taken as it is, in the name of users.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from adjudge.blobs.driver import BlobStore, parse_digest
from adjudge.domain.errors import AdjudgeError, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.permissions import Permission
from adjudge.packages.contest_package.model import MATERIALS_FOLDER, SOURCES_FOLDER, Extension
from adjudge.packages.findings import Finding, PackageRefused, Severity
from adjudge.packages.storing import store_package_files
from adjudge.services.contest_access import make_view
from adjudge.services.contest_package.checks import check_package
from adjudge.services.contest_package.compare import find_differences
from adjudge.services.contest_package.files import OpenedPackage, open_contest_package
from adjudge.services.contest_package.load import load_contest
from adjudge.services.contest_package.write import ContestWriter, StoredFiles, WrittenContest, contest_settings
from adjudge.services.contests import ContestService
from adjudge.services.passwords import PasswordHashing
from adjudge.services.problem_imports import ProblemImportService, limit_archive
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import queries, team_import, teams
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.problems import queries as problem_queries

_NOT_A_SLUG: Final = re.compile(r"[^a-z0-9_-]+")
_OTHER_SLUG: Final = "Import the package under another slug."


class PackageAction(StrEnum):
    """What an import does with an object."""

    CREATE = "create"
    USE = "use"
    """It exists and is used as it is."""
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class PackageItem:
    """What happens with one object, or with all of a kind: ``code`` is empty and ``name`` their number."""

    kind: str
    code: str
    name: str
    action: PackageAction


@dataclass(frozen=True, slots=True)
class PackageReport:
    """What an import does or did, and everything that is wrong with the package."""

    slug: str
    digest: str
    """Of the uploaded archive; a preview is applied by it."""
    items: list[PackageItem]
    findings: tuple[Finding, ...]
    is_unchanged: bool = False
    verifications: list[str] = field(default_factory=list)
    """Ids of the imports that verify new revisions."""

    @property
    def has_errors(self) -> bool:
        return any(item.severity is Severity.ERROR for item in self.findings)


@dataclass(frozen=True, slots=True)
class PackageOptions:
    """Options of an import."""

    slug: str | None = None
    """By default the id of the contest in the package."""
    file_name: str = ""
    verify: bool = False
    """Whether the new problem revisions are verified in the background."""


class _RolledBack(Exception):
    """Ends the transaction of a preview."""


@dataclass(frozen=True, slots=True)
class ContestPackageImporter:
    """Previews and applies imports."""

    database: Database
    blobs: BlobStore
    contests: ContestService
    imports: ProblemImportService
    jobs: JobCommands
    passwords: PasswordHashing
    password_min_length: int
    upload_limit_bytes: int
    new_id: IdFactory = new_id

    async def upload(self, viewer: Viewer, pieces: AsyncIterable[bytes]) -> str:
        """Store an archive; return its digest."""
        viewer.require(Permission.CONTEST_CREATE)
        return await self.blobs.put(limit_archive(pieces, self.upload_limit_bytes))

    async def preview(self, viewer: Viewer, digest: str, options: PackageOptions) -> PackageReport:
        """What an import would do: it is carried out without its submissions, and rolled back."""
        try:
            async with self._open(viewer, digest, options) as opened:
                report = await self._check(viewer, digest, opened, options)
                if not report.has_errors and not report.is_unchanged:
                    await self._try(viewer, opened, report)
                return replace(report, findings=opened.package.findings.in_order())
        except PackageRefused as refused:
            return PackageReport(options.slug or "", digest, [], refused.findings)

    async def apply(self, viewer: Viewer, digest: str, options: PackageOptions) -> PackageReport:
        """Import the package in one transaction; with any error nothing is imported."""
        async with self._open(viewer, digest, options) as opened:
            report = await self._check(viewer, digest, opened, options)
            if report.has_errors:
                raise PackageRefused(opened.package.findings)
            if report.is_unchanged:
                return report
            given = {item.code: item.password for item in opened.package.people.accounts if item.password}
            hashes = await self.passwords.hash_given(given)
            stored = await self._store(opened)
            settings = self.contests.checked(contest_settings(opened.package))

            async def operation(tx: Tx) -> WrittenContest:
                writer = self._writer(tx, viewer, opened, stored, hashes)
                return await writer.write(report.slug, settings, with_submissions=True)

            written = await self.database.transact(operation)
        if options.verify:
            for slug, number in written.revisions.items():
                started = await self.imports.start_verification(viewer, slug, number)
                report.verifications.append(started.id)
        return report

    def _open(self, viewer: Viewer, digest: str, options: PackageOptions) -> AbstractAsyncContextManager[OpenedPackage]:
        viewer.require(Permission.CONTEST_CREATE)
        name, with_problems = _default_name(options.file_name), viewer.can(Permission.PROBLEM_WRITE)
        return open_contest_package(self.blobs, parse_digest(digest, "package"), name, with_problems=with_problems)

    def _writer(
        self, tx: Tx, viewer: Viewer, opened: OpenedPackage, stored: StoredFiles, hashes: dict[str, str]
    ) -> ContestWriter:
        return ContestWriter(
            tx,
            viewer,
            opened,
            stored,
            languages=self.contests.languages,
            jobs=self.jobs,
            hashes=hashes,
            new_id=self.new_id,
        )

    async def _try(self, viewer: Viewer, opened: OpenedPackage, report: PackageReport) -> None:
        """Carry the import out without files and submissions, and roll it back; its error becomes a finding."""
        settings = contest_settings(opened.package)

        async def operation(tx: Tx) -> None:
            writer = self._writer(tx, viewer, opened, StoredFiles(), {})
            await writer.write(report.slug, settings, with_submissions=False)
            raise _RolledBack

        try:
            await self.database.transact(operation)
        except _RolledBack:
            return
        except AdjudgeError as error:
            opened.package.findings.error("", error.message)

    async def _store(self, opened: OpenedPackage) -> StoredFiles:
        """Store the files as blobs; nothing refers to them until the transaction commits."""
        files, package = opened.files, opened.package
        problems = {slug: await store_package_files(self.blobs, item.package) for slug, item in opened.problems.items()}
        photos = {code: await self.blobs.put(files.locate(path)) for code, path in package.photos.items()}
        materials = {}
        for item in (package.extension or Extension(1)).materials:
            path = f"{MATERIALS_FOLDER}/{item.name}"
            materials[item.name] = (await self.blobs.put(files.locate(path)), files.size_bytes(path))
        for digest in opened.blob_sources:
            await self.blobs.put(files.locate(f"{SOURCES_FOLDER}/{digest}"), expected=digest)
        return StoredFiles(problems, photos, materials)

    async def _check(
        self, viewer: Viewer, digest: str, opened: OpenedPackage, options: PackageOptions
    ) -> PackageReport:
        """Check the package against the database; all errors are findings."""
        package, findings = opened.package, opened.package.findings
        slug = options.slug or package.contest.id
        check_package(viewer, opened, slug, self.contests, self.password_min_length)

        async def look(tx: Tx) -> tuple[list[PackageItem], bool]:
            try:
                contest = await queries.find_contest(tx, slug)
            except NotFound:
                return await self._items(tx, opened, slug), False
            if findings.has_errors:
                return [], False
            if not (await make_view(tx, viewer, contest)).is_organiser:  # what differs says what the contest has
                findings.error("contest.json", f"id: the slug {slug!r} is taken.", _OTHER_SLUG)
                return [], False
            stored = await load_contest(tx, viewer, contest)
            differences = await find_differences(tx, opened, stored)
            if differences:
                message = f"id: the contest {slug!r} exists and differs in: {', '.join(differences)}."
                findings.error("contest.json", message, _OTHER_SLUG)
                return [], False
            return [PackageItem("contest", slug, package.contest.name, PackageAction.UNCHANGED)], True

        items, is_unchanged = await self.database.read(look)
        return PackageReport(slug, digest, items, findings.in_order(), is_unchanged)

    async def _items(self, tx: Tx, opened: OpenedPackage, slug: str) -> list[PackageItem]:
        package = opened.package
        people, findings = package.people, package.findings
        items = [PackageItem("contest", slug, package.contest.name, PackageAction.CREATE)]
        digests = {item.id: item.digest for item in (package.extension or Extension(1)).problems}
        for problem in package.problems:
            packaged, known = opened.problems.get(problem.id), await problem_queries.find(tx, problem.id)
            digest = digests.get(problem.id, "") if packaged is None else packaged.digest
            found = None if known is None else await problem_queries.find_revision_by_digest(tx, known.id, digest)
            if packaged is None and known is None and problem.package is None:
                fix = "Add its package to problems/ID/, or import the problem first."
                findings.error("problems.json", f"id: there is no problem {problem.id!r}.", fix, problem.line)
            action = PackageAction.CREATE if packaged is not None and found is None else PackageAction.USE
            items.append(PackageItem("problem", problem.id, problem.name, action))
        known_organizations = await teams.find_organizations(tx, {item.code for item in people.organizations})
        for organization in people.organizations:
            action = PackageAction.USE if organization.code in known_organizations else PackageAction.CREATE
            items.append(PackageItem("organization", organization.code, organization.name, action))
        items += [PackageItem("group", item.code, item.name, PackageAction.CREATE) for item in people.groups]
        items += [PackageItem("team", item.code, item.name, PackageAction.CREATE) for item in people.teams]
        accounts = await team_import.find_accounts(tx, "", [item.code for item in people.accounts])
        for account in people.accounts:
            action = PackageAction.USE if account.code in accounts else PackageAction.CREATE
            items.append(PackageItem("account", account.code, account.name, action))
        extension = package.extension or Extension(1)
        counts = {
            "clarification": len(extension.clarifications),
            "material": len(extension.materials),
            "submission": opened.submission_count,
        }
        items += [PackageItem(kind, "", str(count), PackageAction.CREATE) for kind, count in counts.items() if count]
        return items


def _default_name(file_name: str) -> str:
    """The id of a contest without one: the name of its archive."""
    stem = file_name.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".zip")
    return _NOT_A_SLUG.sub("-", stem).strip("-")[:36] or "contest"
