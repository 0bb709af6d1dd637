"""``adjudge contest materials``: files that are published with a contest on a server."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.domain.contest import MaterialVisibility

_visible = click.option(
    "--visible",
    type=click.Choice([item.value for item in MaterialVisibility]),
    help="always; start: like the problems; thaw: like editorials, with the setting materials_public.",
)


@click.group()
def materials() -> None:
    """Publish files with a contest: rules, the problem set, editorials."""


@materials.command("list")
@click.argument("contest")
@json_option
@server_option
def list_(contest: str, *, as_json: bool, server: str | None) -> None:
    """List the materials that you may see."""
    with open_client(server) as client:
        found = client.contest_materials(contest)
    if as_json:
        print_json(found)
        return
    table = Table("name", "title", "visible", "bytes", "uploaded")
    for item in found:
        table.add_row(escape(item.name), escape(item.title), item.visible, str(item.size_bytes), item.created_at)
    make_console().print(table)


@materials.command()
@click.argument("contest")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", help="File name on the server; default: that of the file.")
@click.option("--title", help="Shown instead of the file name.")
@_visible
@server_option
def add(
    contest: str, file: Path, *, name: str | None, title: str | None, visible: str | None, server: str | None
) -> None:
    """Upload a file, or replace the one with its name. A new one is visible always by default."""
    with open_client(server) as client:
        saved = client.contest_save_material(
            contest, name or file.name, file.read_bytes(), title=title, visible=visible
        )
    click.echo(f"{saved.name}: {saved.size_bytes} bytes, visible {saved.visible}")


@materials.command("set")
@click.argument("contest")
@click.argument("name")
@click.option("--title", help="Shown instead of the file name.")
@_visible
@server_option
def set_(contest: str, name: str, *, title: str | None, visible: str | None, server: str | None) -> None:
    """Change the title of a material, or when it is visible."""
    with open_client(server) as client:
        saved = client.contest_update_material(contest, name, title=title, visible=visible)
    click.echo(f"{saved.name}: visible {saved.visible}")


@materials.command()
@click.argument("contest")
@click.argument("name")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: its name."
)
@server_option
def download(contest: str, name: str, *, output: Path | None, server: str | None) -> None:
    """Download a material."""
    with open_client(server) as client:
        content = client.contest_material(contest, name)
    target = output or Path(Path(name).name)
    target.write_bytes(content)
    click.echo(str(target))


@materials.command()
@click.argument("contest")
@click.argument("name")
@server_option
def remove(contest: str, name: str, *, server: str | None) -> None:
    """Delete a material."""
    with open_client(server) as client:
        client.contest_delete_material(contest, name)
    click.echo(f"{name}: deleted")
