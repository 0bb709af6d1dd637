"""Other projects that benchmarks are compared with: each in a virtual environment of its own under ``.cache/peers``.

``PEERS=none`` measures without any of them. A peer that cannot be had is a row that says why, never a crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.install import InstallError, install_with_apt

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".cache" / "peers"
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_LONGEST_REASON = 200


def refused() -> str:
    """Tell why no peer is wanted; nothing, if they are."""
    return "PEERS=none was given" if os.environ.get("PEERS", "").lower() in ("none", "0") else ""


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return PEERS / peer.lower() / "bin" / "python"


def install(peer: str, packages: Sequence[str], *, needs: str = "") -> str:
    """Install a peer into its environment; gives the reason where it cannot be had.

    ``needs`` is the Debian package that building it takes; root installs it.
    """
    if why := refused():
        return why
    folder = PEERS / peer.lower()
    marker = folder / "installed"
    if marker.exists() and python_of(peer).exists():
        return ""
    if needs:
        with suppress(InstallError):  # it may be there under another name: building tells
            install_with_apt((needs,))
    steps = ([sys.executable, "-m", "venv", "--clear", str(folder)], [str(python_of(peer)), *_PIP, *packages])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            hint = f" (it needs {needs})" if needs else ""
            return f"pip install {peer.lower()} failed{hint}: {last_line(done.stderr or done.stdout)}"[
                : _LONGEST_REASON * 2
            ]
    marker.touch()
    return ""


def install_system(package: str) -> str:
    """Install a Debian package, as root; gives the reason where that fails."""
    if why := refused():
        return why
    try:
        install_with_apt((package,))
    except InstallError as error:
        return f"{error}; install the package {package}"
    return ""


def last_line(text: str) -> str:
    """What a program that failed wrote last; a compiler's error, where there is one, says more than its caller's."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("[notice]")]
    fatal = [line for line in lines if "fatal error:" in line]
    return (fatal or lines or ["it wrote nothing"])[-1][-_LONGEST_REASON:]
