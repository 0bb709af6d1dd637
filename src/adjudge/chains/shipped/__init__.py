"""Chains that come with Adjudge, as files to apply as they are or to copy and change."""

from __future__ import annotations

from importlib import resources

from adjudge.chains.definition import Definition, read_definition
from adjudge.domain.errors import NotFound


def names() -> list[str]:
    """The names of the chains that come with Adjudge."""
    files = resources.files(__package__).iterdir()
    return sorted(item.name.removesuffix(".yaml") for item in files if item.name.endswith(".yaml"))


def text(name: str) -> str:
    """The file of one of them."""
    if name not in names():
        raise NotFound("shipped_chain", name)
    return resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def definition(name: str) -> Definition:
    """One of them, read."""
    return read_definition(text(name), place=f"{name}.yaml")
