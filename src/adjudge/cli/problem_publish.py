"""``adjudge problem publish``: packages straight into the configured database, without a server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import click

from adjudge import settings as settings_source
from adjudge.blobs.driver import BlobStore
from adjudge.cli.options import follow_links_option
from adjudge.cli.problem_show import print_findings
from adjudge.cli.wiring.drivers import open_blobs
from adjudge.cli.wiring.judge import open_judge
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.permissions import Role
from adjudge.domain.problem_metadata import parse_difficulty, parse_slug, parse_tags, parse_title
from adjudge.packages.archive import Links
from adjudge.packages.findings import Severity
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, load_package
from adjudge.packages.verifier import Verifier
from adjudge.services.package_import import PackageMetadata, import_package, new_problem
from adjudge.settings import Settings
from adjudge.store import Database, open_database
from adjudge.store.accounts import users


@click.command(name="publish")
@click.argument("sources", type=click.Path(exists=True, path_type=Path), metavar="SRC...", nargs=-1, required=True)
@click.option("--slug", help="Slug of the problem. Default: from the package.")
@click.option("--title", help="Default: from the package.")
@click.option("--tags", default="", help="Comma-separated tags. Default: the package's keywords.")
@click.option("--difficulty", type=float, help="Difficulty, a number on your own scale.")
@click.option("--owner", default="", help="Owner of the problems. Default: the first admin.")
@click.option("--draft", is_flag=True, help="Import without publishing.")
@click.option("--verify", is_flag=True, help="Verify the jury solutions first; fail if they do not pass.")
@follow_links_option
def publish(
    sources: tuple[Path, ...], owner: str, draft: bool, verify: bool, links: Links, **said: str | float | None
) -> None:
    """Import packages into the configured database and publish them.

    An existing slug gets a new revision, unless the package is unchanged.
    """
    if len(sources) > 1 and (said["slug"] or said["title"]):
        raise InvalidInput("--slug, --title: allowed with a single package only.", field="slug")
    settings = settings_source.load()
    asyncio.run(_publish(settings, sources, _PublishOptions(owner, draft, verify, links, said)))


class _PublishOptions:
    """Options of the command, validated and normalized."""

    def __init__(
        self, owner: str, draft: bool, verify: bool, links: Links, said: dict[str, str | float | None]
    ) -> None:
        self.owner, self.is_draft, self.is_verified, self.links = owner, draft, verify, links
        tags = [tag for tag in str(said["tags"] or "").split(",") if tag.strip()]
        difficulty = said["difficulty"]
        self.metadata = PackageMetadata(
            parse_slug(str(said["slug"])) if said["slug"] else None,
            parse_title(str(said["title"])) if said["title"] else None,
            parse_tags(tags) if tags else None,
            parse_difficulty(float(difficulty)) if difficulty is not None else None,
        )


async def _publish(settings: Settings, sources: tuple[Path, ...], options: _PublishOptions) -> None:
    async with open_database(settings.database.url.reveal()) as database, open_blobs(settings) as blobs:
        owner_id = await _owner(database, options.owner)
        for source in sources:
            with load_package(source, links=options.links) as package:
                print_findings(tuple(item for item in package.findings if item.severity is not Severity.INFO))
                click.echo(await _import(database, blobs, await _build_and_verify(package, options), options, owner_id))


async def _owner(database: Database, name: str) -> str:
    if name:
        known = await database.read(lambda tx: users.find_with_password_by_name(tx, name))
        if known is None:
            raise InvalidInput(f"owner: user not found: {name!r}.", field="owner")
        return known.user.id
    admins = await database.read(lambda tx: users.page(tx, role=Role.ADMIN, limit=1))
    if not admins:
        raise InvalidInput("owner: there is no admin yet; run `adjudge up` once to create one.", field="owner")
    return admins[0].id


async def _build_and_verify(package: Package, options: _PublishOptions) -> Package:
    """Create generated files; verify the package if requested."""
    async with AsyncExitStack() as stack:
        if package.generated_files or options.is_verified:
            judge = await stack.enter_async_context(open_judge(1))
            package = await generate_missing_files(package, judge)
            if options.is_verified and not (await Verifier(judge, package, 1).run()).ok:
                raise Conflict(f"{package.problem.short_name}: verification failed; see `adjudge problem verify`.")
    return package


async def _import(
    database: Database, blobs: BlobStore, package: Package, options: _PublishOptions, owner_id: str
) -> str:
    problem = new_problem(package, owner_id, options.metadata)
    done = await import_package(database, blobs, package, problem, publish=not options.is_draft)
    if done.is_unchanged:
        return f"{done.slug}: unchanged (revision {done.revision})."
    return f"{done.slug}: revision {done.revision} {'added as a draft' if options.is_draft else 'published'}."
