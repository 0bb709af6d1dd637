"""``adjudge problem new``, ``import`` and ``export``: create and convert packages."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import click

from adjudge.cli.options import follow_links_option
from adjudge.cli.problem_show import print_findings
from adjudge.cli.wiring.judge import open_judge
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.packages.archive import Links
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.export import export_icpc, write_folder, write_zip
from adjudge.packages.jury_runner import generate_missing_files
from adjudge.packages.load import Package, default_name, load_package
from adjudge.packages.scaffold import scaffold

_SOURCE = click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="SRC")


@click.command(name="new")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--title", default="", help="Problem title. Default: folder name.")
def new(folder: Path, title: str) -> None:
    """Create a working example package in DIR."""
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder}: folder is not empty.")
    title = title or default_name(folder).replace("-", " ").title()
    if not title.isprintable():
        raise InvalidInput("title: contains non-printable characters.", field="title")
    for name, data in scaffold(title, str(uuid4())).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    click.echo(f"Created {folder}. Next: adjudge problem verify {folder}")


@click.command(name="import")
@_SOURCE
@click.option("--to", "folder", type=click.Path(path_type=Path), help="Output folder; must not exist.")
@follow_links_option
def import_(source: Path, folder: Path | None, links: Links) -> None:
    """Convert a package of any supported format to ICPC. Without --to, list the files.

    Generated tests (Polygon standard packages, DMOJ generators) are generated in the sandbox.
    """
    with load_package(source, links=links) as read:
        package = _made(read)
        findings = Findings(list(package.findings))
        normal = export_icpc(package.problem, findings)
        print_findings(findings.in_order())
        if folder is None:
            for name in sorted(normal.contents):
                click.echo(name)
            return
        write_folder(normal.contents, package.files, folder)
    click.echo(f"Wrote {folder}: {len(normal.problem.cases)} tests, {len(normal.problem.submissions)} submissions.")


@click.command(name="export")
@_SOURCE
@click.option("--to", "target", type=click.Path(path_type=Path), required=True, metavar="FILE.zip")
@click.option("--format", "kind", type=click.Choice(["icpc"]), default="icpc", show_default=True)
@follow_links_option
def export(source: Path, target: Path, kind: str, links: Links) -> None:  # noqa: ARG001  # there is one format so far
    """Export a package as an ICPC 2025-09 archive."""
    if target.exists():
        raise Conflict(f"{target}: file exists.")
    with load_package(source, links=links) as read:
        package = _made(read)
        findings = Findings(list(package.findings))
        normal = export_icpc(package.problem, findings)
        print_findings(findings.in_order())
        try:
            write_zip(normal.contents, package.files, target)
        except BaseException:
            with suppress(OSError):
                target.unlink()  # half an archive is worse than none
            raise
    click.echo(f"Wrote {target}.")


def _made(package: Package) -> Package:
    return asyncio.run(_complete(package)) if package.generated_files else package


async def _complete(package: Package) -> Package:
    async with open_judge(1) as judge:
        return await generate_missing_files(package, judge)
