"""``adjudge problems``: what there is to solve at a server."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adjudge.cli.remote import connected, server_option
from adjudge.cli.terminal import console as open_console
from adjudge.client.values import Problem

_BLOCKS: Final = frozenset({"p", "h1", "h2", "h3", "h4", "li", "pre", "tr", "div", "ul", "ol", "table", "br"})


@click.group(name="problems", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List the problems of a server, or show one."""
    if context.invoked_subcommand is None:
        context.invoke(list_)


@command.command("list")
@click.option("--search", default="", help="Words of the title, the slug or the tags.")
@click.option("--tag", "tags", multiple=True, help="Several times: all of them.")
@click.option("--at-most", type=click.IntRange(1, 100), default=50, show_default=True)
@click.option("--after", metavar="CURSOR", help="Go on where the last page ended.")
@server_option
def list_(
    search: str = "", tags: tuple[str, ...] = (), at_most: int = 50, after: str | None = None, server: str | None = None
) -> None:
    """List problems."""
    with connected(server) as client:
        page = client.problems(search=search, tags=tags, cursor=after, limit=at_most)
    table = Table("slug", "title", "difficulty", "solved", "tags")
    for item in page.items:
        difficulty = "" if item.difficulty is None else f"{item.difficulty:g}"
        table.add_row(
            escape(item.slug),
            escape(item.title),
            difficulty,
            "[green]yes[/]" if item.solved else "",
            escape(", ".join(item.tags)),
        )
    open_console().print(table)
    if page.next:
        click.echo(f"There are more: --after {page.next}")


@command.command()
@click.argument("slug")
@click.option("--lang", default="", help="Language of the statement.")
@server_option
def show(slug: str, lang: str, server: str | None) -> None:
    """Show one problem: limits, statement, samples."""
    with connected(server) as client:
        found = client.problem(slug, language=lang)
    _print(open_console(), found)


def _print(console: Console, found: Problem) -> None:
    console.print(f"[bold]{escape(found.title)}[/]  [dim]{escape(found.slug)}, revision {found.revision}[/]")
    memory_mib = found.limits.memory_bytes / 1024**2
    console.print(f"{found.limits.time_ms} ms, {memory_mib:g} MiB, {found.tests} tests, {escape(found.grading)}")
    if found.statement and found.statement.get("html"):
        console.print()
        console.print(escape(plain(str(found.statement["html"]))))
    for sample in found.samples:
        console.print(f"\n[bold]{escape(sample.name)}[/]{' (cut)' if sample.is_cut else ''}")
        console.print(f"[dim]input[/]\n{escape(sample.input)}\n[dim]output[/]\n{escape(sample.output)}")


class _Text(HTMLParser):
    """The words of a page, a block on a line of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line for a block."""
        if tag in _BLOCKS:
            self.said.append("\n- " if tag == "li" else "\n")
        if tag == "img":
            self.said.append(dict(attrs).get("alt") or "(image)")

    def handle_data(self, data: str) -> None:
        """Keep the words."""
        self.said.append(data)


def plain(html: str) -> str:
    """A statement without its markup; maths stays TeX."""
    parser = _Text()
    parser.feed(html)
    lines = [line.rstrip() for line in "".join(parser.said).splitlines()]
    return "\n".join(line for before, line in zip(["", *lines], lines, strict=False) if line or before).strip()
