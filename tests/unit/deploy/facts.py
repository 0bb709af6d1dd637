"""What deployment files may name: commands, settings and their values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from adjudge.cli import COMMANDS
from adjudge.sandbox.container_checks import REQUIRED_CAPABILITIES
from adjudge.settings import Settings, all_settings, environment_names, load
from tests.support.install import ROOT

DEPLOY = ROOT / "deploy"
CAPABILITIES = sorted(name.removeprefix("CAP_") for name in REQUIRED_CAPABILITIES)
SETTINGS = {name for _, _, setting in all_settings() for name in environment_names(setting)}


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Load settings as a process would, and fail on names that no setting is read from."""
    unknown = {name for name in environment if name.startswith("ADJUDGE_")} - SETTINGS
    assert not unknown, f"no setting is read from {sorted(unknown)}"
    settings = load(environ=environment)
    assert not settings.unknown_variables
    return settings


def check_command(arguments: list[str]) -> None:
    assert arguments[0] in COMMANDS, f"there is no command {arguments[0]}"


def documents(path: Path) -> list[dict[str, Any]]:
    """All documents of a YAML file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]
