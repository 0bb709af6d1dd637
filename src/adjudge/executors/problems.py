"""``problem.check``, ``problem.generate``, ``problem.verify``, ``problem.publish``, ``problem.list``."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.chains.rights import Rights
from adjudge.domain.errors import NodeRefused, NotFound
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Permission
from adjudge.domain.problem_metadata import SLUG_PATTERN, parse_slug
from adjudge.executors.impersonation import find_chain_run_principal, resolve_user_id
from adjudge.judge.pipeline import Judge
from adjudge.packages.findings import Finding, Findings, PackageRefused, Severity
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, check_test_files, load_package
from adjudge.packages.storing import new_revision, store_package_files
from adjudge.packages.verifier import Verifier, verification_to_json
from adjudge.services.package_import import open_revision
from adjudge.store import Database, Tx
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.ops import audit_log
from adjudge.store.problems import commands as problem_rows
from adjudge.store.problems import queries as problem_queries
from adjudge.store.problems.models import NewProblem, NewRevision

_SHOWN_FINDINGS: Final = 200
_PACKAGE: Final = {
    "type": "string",
    "pattern": "^[0-9a-f]{64}$",
    "description": "The package: a ZIP in the file store, by its digest.",
}
_SLUG: Final = {
    "type": "string",
    "pattern": f"^{SLUG_PATTERN}$",
    "description": "The problem's slug.",
}
_REVISION: Final = {"type": "string", "description": "The revision, by its id."}


@asynccontextmanager
async def _open_package(blobs: BlobStore, digest: str, name: str) -> AsyncIterator[Package]:
    """Fetch, unpack and read a package, off the event loop."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-package-")))
        archive = folder / f"{re.sub('[^a-z0-9-]+', '-', name.lower()) or 'problem'}.zip"
        await blobs.fetch_to(digest, archive)
        opening = load_package(archive)
        package = await asyncio.to_thread(opening.__enter__)
        try:
            yield package
        finally:
            await asyncio.to_thread(opening.__exit__, None, None, None)


class ProblemCheckExecutor:
    """Checks a package's form: metadata, files, tests, line ends. Nothing of it is run.

    The artifact has `ok`, `findings` (severity, path, line, message, fix), `title`, `format`, `tests`, `submissions`
    and `to_be_made`. A package with errors fails the node for good, with every finding in the log.
    """

    type: ClassVar[str] = "problem.check"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.PROBLEM_WRITE,)
    can_be_killed: ClassVar[bool] = True
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"package": _PACKAGE, "problem": _SLUG},
        "required": ["package"],
        "additionalProperties": False,
    }

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def execute(self, context: NodeContext) -> NodeResult:
        """Read the package and report its findings."""
        try:
            async with _open_package(self._blobs, context.cfg["package"], context.cfg.get("problem", "")) as package:
                findings = Findings(list(package.findings))
                await asyncio.to_thread(check_test_files, package, findings)
                found = {
                    "ok": not findings.has_errors,
                    "findings": _shown(findings.in_order()),
                    "title": package.problem.title,
                    "format": package.problem.package_format.format,
                    "tests": len(package.problem.cases),
                    "submissions": len(package.problem.submissions),
                    "to_be_made": len(package.generated_files),
                }
        except PackageRefused as refused:
            for finding in tuple(refused.findings)[:_SHOWN_FINDINGS]:
                await context.log(str(finding))
            raise
        for item in findings.in_order():
            if item.severity is not Severity.INFO:
                await context.log(str(item))
        if findings.has_errors:
            raise NodeRefused("The package has errors; the node's log names them.")
        return NodeResult(found)


class ProblemGenerateExecutor:
    """Makes what a package only describes (tests by its generators, answers by its main solution), in the sandbox.

    The whole is stored as a new draft revision; a problem that does not exist yet is created. The artifact has
    `problem_id`, `slug`, `revision_id`, `number`, `manifest_digest`, `tests` and `made`.
    """

    type: ClassVar[str] = "problem.generate"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.PROBLEM_WRITE,)
    can_be_killed: ClassVar[bool] = True
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "package": _PACKAGE,
            "problem": _SLUG,
            "user": {"type": "string", "description": "Owner of the revision. Default: the user who started the run."},
        },
        "required": ["package", "problem"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database, blobs: BlobStore, judge: Judge) -> None:
        self._database, self._blobs, self._judge = database, blobs, judge

    async def execute(self, context: NodeContext) -> NodeResult:
        """Generate, store and add the revision once: its id is saved in the checkpoint before it is used."""
        kept = context.checkpoint if isinstance(context.checkpoint, dict) else {}
        revision_id = kept.get("revision_id") or new_id()
        await context.save_checkpoint({"revision_id": revision_id})
        user_id = await resolve_user_id(self._database, context)
        slug = parse_slug(context.cfg["problem"], "problem")
        async with _open_package(self._blobs, context.cfg["package"], slug) as described:
            package = await generate_missing_files(described, self._judge)
            await context.log(f"made {len(described.generated_files)} files; storing {len(package.files.names())}")
            files = await store_package_files(self._blobs, package)
            revision = new_revision(package, files, problem_id="", created_by=user_id, new_id=lambda: revision_id)
            title = package.problem.title
        problem_id, number = await self._database.transact(lambda tx: _add_revision(tx, revision, slug, title))
        return NodeResult(
            {
                "problem_id": problem_id,
                "slug": slug,
                "revision_id": revision_id,
                "number": number,
                "manifest_digest": revision.manifest_digest,
                "tests": len(package.problem.cases),
                "made": len(described.generated_files),
            }
        )


async def _add_revision(tx: Tx, revision: NewRevision, slug: str, title: str) -> tuple[str, int]:
    """Add the revision, and its problem if it does not exist, unless an earlier attempt has done so."""
    problem = await problem_queries.find(tx, slug)
    if problem is None:
        problem_id = new_id()
        await problem_rows.insert(tx, NewProblem(problem_id, slug, title, revision.created_by))
    elif problem.owner_id != revision.created_by:
        raise NodeRefused(
            f"The problem {slug!r} belongs to somebody else; choose another slug, or name its owner in user."
        )
    else:
        problem_id = problem.id
        latest = await problem_queries.find_latest_revision(tx, problem_id)
        if latest is not None and latest.id == revision.id:
            return problem_id, latest.number
    return problem_id, await problem_rows.add_revision(tx, replace(revision, problem_id=problem_id))


class ProblemVerifyExecutor:
    """Verifies a revision: input validators on every test, the jury's own tests, every jury solution on every test.

    The artifact is the table: `ok`, `complaints`, `submissions` (path, language, expected, verdict, score, time_ms,
    mem_kb, ok, reasons) and the `time_limit` that the jury's times suggest. A revision that is not as its package says
    fails the node for good, unless `report_only` is true.
    """

    type: ClassVar[str] = "problem.verify"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.PROBLEM_READ,)
    can_be_killed: ClassVar[bool] = True
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "revision_id": _REVISION,
            "problem": {"type": "string", "description": "Or slug or id of a problem: its published revision."},
            "report_only": {"type": "boolean", "description": "Whether the node succeeds whatever is found."},
            "jobs": {
                "type": "integer",
                "minimum": 1,
                "maximum": 64,
                "description": "Runs side by side; as many as cores.",
            },
        },
        "oneOf": [{"required": ["revision_id"]}, {"required": ["problem"]}],
        "additionalProperties": False,
    }

    def __init__(self, database: Database, cache: BlobCache, judge: Judge) -> None:
        self._database, self._cache, self._judge = database, cache, judge

    async def execute(self, context: NodeContext) -> NodeResult:
        """Run the verification and compare the results with the expectations."""
        cfg = context.cfg
        starter = await find_chain_run_principal(self._database, context)
        revision_id = await self._database.read(lambda tx: _find_verifiable(tx, cfg, starter))
        jobs = cfg.get("jobs") or len(os.sched_getaffinity(0))
        async with open_revision(self._database, self._cache, revision_id) as package:
            found = await Verifier(self._judge, package, jobs).run()
        table = {**verification_to_json(package.problem, found), "revision_id": revision_id}
        for item in table["submissions"]:
            mark = "ok  " if item["ok"] else "FAIL"
            await context.log(
                f"{mark} {item['path']}: {item['verdict']}, expected {item['expected']}, {item['time_ms']} ms"
            )
        for issue in table["complaints"]:
            await context.log(f"FAIL {issue['where']}: {issue['message']}")
        if not found.ok and not cfg.get("report_only", False):
            wrong = [item["path"] for item in table["submissions"] if not item["ok"]]
            wrong += [issue["where"] for issue in table["complaints"]]
            raise NodeRefused(f"Verification failed: {', '.join(wrong[:10])}.")
        return NodeResult(table)


async def _find_verifiable(tx: Tx, cfg: Mapping[str, Any], starter: Rights) -> str:
    """The revision that a node names, if the user of the run may see its secret tests; else raise ``NotFound``."""
    if "revision_id" in cfg:
        revision = await problem_queries.find_revision(tx, cfg["revision_id"])
        owner = await problem_queries.find(tx, revision.problem_id)
        if owner is None or not starter.sees_draft(owner.owner_id):
            raise NotFound("revision", cfg["revision_id"])
        return revision.id
    problem = await problem_queries.find(tx, cfg["problem"])
    if problem is None:
        raise NotFound("problem", cfg["problem"])
    if not starter.sees_draft(problem.owner_id):
        if problem.published_revision_id is None:
            raise NotFound("problem", cfg["problem"])
        starter.require(Permission.PROBLEM_READ_DRAFT, f"see the secret tests of {problem.slug!r}")
    if problem.published_revision_id is None:
        raise NodeRefused(f"The problem {problem.slug!r} is not published; name a revision_id.")
    return problem.published_revision_id


class ProblemPublishExecutor:
    """Publishes a revision: new submissions are judged against it from then on. Chains that wait for it are notified.

    The artifact has `problem_id`, `slug`, `revision_id`, `number` and `version`. A revision that is published already
    stays so, and the node succeeds.
    """

    type: ClassVar[str] = "problem.publish"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.PROBLEM_PUBLISH,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "revision_id": _REVISION,
            "reason": {"type": "string", "maxLength": 1000, "description": "For the audit log."},
        },
        "required": ["revision_id"],
        "additionalProperties": False,
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def execute(self, context: NodeContext) -> NodeResult:
        """Publish, write the audit log and fire the triggers that wait for it, in one transaction."""
        revision_id, reason = context.cfg["revision_id"], context.cfg.get("reason", "")
        starter = await find_chain_run_principal(self._database, context)

        async def publish(tx: Tx) -> dict[str, Any]:
            revision = await problem_queries.find_revision(tx, revision_id)
            problem = await problem_queries.find(tx, revision.problem_id)
            if problem is None:
                raise NotFound("problem", revision.problem_id)
            if not starter.owns(problem.owner_id):
                if not starter.sees_draft(problem.owner_id):
                    raise NotFound("revision", revision_id)
                raise NodeRefused(f"Problem {problem.slug!r} belongs to another user.")
            artifact = {
                "problem_id": problem.id,
                "slug": problem.slug,
                "revision_id": revision_id,
                "number": revision.number,
                "version": problem.version,
            }
            if problem.published_revision_id == revision_id:
                return artifact
            artifact["version"] = await problem_rows.publish(
                tx, problem_id=problem.id, revision_id=revision_id, version=problem.version
            )
            await audit_log.record(
                tx,
                actor=context.actor,
                action="problem.publish",
                object_kind="problem",
                objects={problem.id: {"revision_id": revision_id, "run_id": context.run_id}},
                reason=reason or f"chain {context.chain_name}",
            )
            event = {"problem_id": problem.id, "slug": problem.slug, "revision": revision.number}
            await chain_triggers.fire_event(tx, chain_triggers.PROBLEM_PUBLISHED, event)
            return artifact

        return NodeResult(await self._database.transact(publish))


class ProblemListExecutor:
    """Lists published problems, for a `map` over them: `problems` with `id`, `slug`, `title`, `revision_id`."""

    type: ClassVar[str] = "problem.list"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.PROBLEM_READ,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": "How many; 10000 otherwise."}
        },
        "additionalProperties": False,
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def execute(self, context: NodeContext) -> NodeResult:
        limit = context.cfg.get("limit", 10_000)
        found = await self._database.read(lambda tx: problem_queries.list_published(tx, limit=limit))
        problems = [
            {"id": item.id, "slug": item.slug, "title": item.title, "revision_id": item.revision_id} for item in found
        ]
        return NodeResult({"problems": problems, "count": len(problems)})


def _shown(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
    return [
        {
            "severity": item.severity.value,
            "path": item.path,
            "line": item.line,
            "message": item.message,
            "fix": item.fix,
        }
        for item in findings[:_SHOWN_FINDINGS]
    ]
