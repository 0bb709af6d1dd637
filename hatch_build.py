"""Build hook: compiles the sandbox launcher into the package."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Replaced when the launcher lands."""
