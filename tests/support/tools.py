"""Programs that tests run once, such as checkers of configuration files: found, or installed with apt.

``python -m tests.support.servers`` installs them, too. A missing program skips a test, except with ``CI=true``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.install import InstallError, install_with_apt


@dataclass(frozen=True, slots=True)
class Tool:
    """A program and the Debian packages that contain it."""

    name: str
    apt_packages: tuple[str, ...]

    def locate(self) -> Path:
        """Find the program, or install it; raises InstallError."""
        if (found := shutil.which(self.name)) is None:
            install_with_apt(self.apt_packages)
            found = shutil.which(self.name)
        if found is None:
            raise InstallError(f"{' '.join(self.apt_packages)} contains no {self.name}")
        return Path(found)

    def run(
        self, arguments: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it; skip the test, or fail with ``CI=true``, if it cannot be had."""
        try:
            program = self.locate()
        except InstallError as error:
            message = f"{self.name} is missing ({error}). Install it: apt-get install {' '.join(self.apt_packages)}."
            if os.environ.get("CI") == "true":
                pytest.fail(message, pytrace=False)
            pytest.skip(message)
        argv = [str(program), *map(str, arguments)]
        environment = {**os.environ, **(env or {})}
        return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


SYSTEMD_ANALYZE = Tool("systemd-analyze", ("systemd",))
PROMTOOL = Tool("promtool", ("prometheus",))
TOOLS = (SYSTEMD_ANALYZE, PROMTOOL)
