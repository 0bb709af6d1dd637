"""Chains that come with Adjudge, as files to apply as they are or to copy and change."""

from __future__ import annotations

from importlib import resources

from adjudge.chains.definition_file import ChainDefinition, read_definition
from adjudge.domain.errors import NotFound


def list_builtin() -> list[str]:
    """The names of the chains that come with Adjudge."""
    files = resources.files(__package__).iterdir()
    return sorted(item.name.removesuffix(".yaml") for item in files if item.name.endswith(".yaml"))


def read_builtin(name: str) -> str:
    """The file of one of them."""
    if name not in list_builtin():
        raise NotFound("shipped_chain", name)
    return resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def load_builtin(name: str) -> ChainDefinition:
    return read_definition(read_builtin(name), place=f"{name}.yaml")
