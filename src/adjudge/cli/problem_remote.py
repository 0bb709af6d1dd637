"""``adjudge problem list``, ``view`` and ``upload``: problems on a server."""

from __future__ import annotations

import io
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.options import after_option, aliased_option, follow_links_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.client import Client
from adjudge.packages.archive import Links, open_package
from adjudge.schema.problems import ProblemRead

EXIT_FAILED: Final = 1
_BLOCKS: Final = frozenset({"p", "h1", "h2", "h3", "h4", "li", "pre", "tr", "div", "ul", "ol", "table", "br"})


@click.command("list")
@click.option("--search", default="", help="Search in title, slug and tags.")
@click.option("--tag", "tags", multiple=True, help="Filter by tag. May be repeated (all must match).")
@limit_option(default=50, maximum=100)
@after_option("cursor")
@server_option
def list_(
    search: str = "", tags: tuple[str, ...] = (), limit: int = 50, after: str = "", server: str | None = None
) -> None:
    """List problems on a server."""
    with open_client(server) as client:
        page = client.problems(search=search, tags=tags, cursor=after or None, limit=limit)
    table = Table("slug", "title", "difficulty", "solved", "solved by", "tags")
    for item in page.items:
        difficulty = "" if item.difficulty is None else f"{item.difficulty:g}"
        table.add_row(
            escape(item.slug),
            escape(item.title),
            difficulty,
            "[green]yes[/]" if item.solved else "[yellow]tried[/]" if item.tried else "",
            f"{item.solvers or ''}",
            escape(", ".join(item.tags)),
        )
    make_console().print(table)
    if page.next:
        click.echo(f"More results: --after {page.next}")


@click.command()
@click.argument("slug")
@aliased_option("--statement-language", "language", aliases=["--lang"], default="", help="Statement language.")
@server_option
def view(slug: str, language: str, server: str | None) -> None:
    """Show a problem on a server: limits, statement and samples."""
    with open_client(server) as client:
        found = client.problem(slug, language=language)
    _print(make_console(), found)


@click.command()
@click.argument("package", type=click.Path(exists=True, path_type=Path))
@click.option("--slug", help="Slug of the problem. Default: from the package.")
@click.option("--title", help="Default: from the package.")
@click.option("--tag", "tags", multiple=True, help="Tag. May be repeated. Default: the package's keywords.")
@click.option("--difficulty", type=float)
@click.option("--verify", is_flag=True, help="Verify the jury solutions.")
@click.option("--publish", is_flag=True, help="Publish if verification passes.")
@click.option("--no-wait", is_flag=True, help="Print the import ID and exit.")
@server_option
@follow_links_option
def upload(
    *,
    package: Path,
    tags: tuple[str, ...],
    verify: bool,
    no_wait: bool,
    server: str | None,
    links: Links,
    **metadata: Any,
) -> None:
    """Upload a package (ZIP or folder) to a server.

    Follows the import until it ends. Exit codes: 0 imported (and published with --publish), 1 failed.
    """
    data = package.read_bytes() if package.is_file() else zip_package(package, links)
    with open_client(server) as client:
        wanted = {
            "tags": tags or None,
            "verify": verify or None,
            "file_name": f"{package.resolve().stem}.zip",
            **metadata,
        }
        started = client.problem_import(data, **wanted)
        click.echo(started.id)
        if not no_wait:
            _follow(client, started.id, publish=metadata["publish"])


def zip_package(folder: Path, links: Links) -> bytes:
    """Return a folder as a ZIP archive; links are replaced by their targets, as far as ``links`` allows."""
    buffer = io.BytesIO()
    with open_package(folder, links=links) as files, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in files.names():
            archive.write(files.locate(name), name)
    return buffer.getvalue()


def _follow(client: Client, import_id: str, *, publish: bool) -> None:
    console, stage = make_console(), ""
    for state in client.import_watch(import_id):
        now = state.progress.stage if state.progress else ""
        if now and now != stage:
            stage = now
            console.print(f"[dim]{escape(stage)}[/]")
    found = client.import_wait(import_id)
    for item in found.findings:
        location = ":".join(str(part) for part in (item.path, item.line) if part)
        console.print(escape(f"{item.severity}: {location} {item.message} {item.fix or ''}".strip()))
    passed = found.jury is None or bool(found.jury.get("ok"))
    if found.state != "succeeded":
        console.print(f"[red]{found.state}[/]: {escape(found.error or '')}")
        raise click.exceptions.Exit(EXIT_FAILED)
    done = "published" if publish and passed else "imported"
    console.print(f"[green]{done}[/] {escape(str(found.slug))}, revision {found.revision}")
    if publish and not passed:
        raise click.exceptions.Exit(EXIT_FAILED)


def _print(console: Console, found: ProblemRead) -> None:
    console.print(f"[bold]{escape(found.title)}[/]  [dim]{escape(found.slug)}, revision {found.revision}[/]")
    memory_mib = found.limits.memory_bytes / 1024**2
    console.print(f"{found.limits.time_ms} ms, {memory_mib:g} MiB, {found.tests} tests, {escape(found.grading)}")
    if found.statement and found.statement.html:
        console.print()
        console.print(escape(html_to_text(found.statement.html)))
    for sample in found.samples:
        console.print(f"\n[bold]{escape(sample.name)}[/]{' (truncated)' if sample.is_cut else ''}")
        console.print(f"[dim]input[/]\n{escape(sample.input)}\n[dim]output[/]\n{escape(sample.output)}")


class _HtmlToText(HTMLParser):
    """Collects the text of a page, one line per block element."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a new line for a block element."""
        if tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")
        if tag == "img":
            self.parts.append(dict(attrs).get("alt") or "(image)")

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.parts.append(data)


def html_to_text(html: str) -> str:
    """Return a statement without markup; formulas stay TeX."""
    parser = _HtmlToText()
    parser.feed(html)
    lines = [line.rstrip() for line in "".join(parser.parts).splitlines()]
    return "\n".join(line for before, line in zip(["", *lines], lines, strict=False) if line or before).strip()


@click.group(name="problems", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, show and upload problems on a server."""
    if context.invoked_subcommand is None:
        context.invoke(list_)


for _name, _command in {"list": list_, "show": view, "import": upload}.items():
    command.add_command(_command, _name)
