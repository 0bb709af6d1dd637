"""``python -m bench NAME`` runs one benchmark; without a name, or with one that is none, it lists them.

A benchmark is a module here that makes a ``Bench`` of its own name; the others are its parts.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tests.support.server_process import ServerNotInstalled

NO_SERVER = 3
"""The exit code where a server that the benchmark is about cannot be had."""


def names() -> list[str]:
    """Every benchmark."""
    modules = Path(__file__).parent.glob("*.py")
    return sorted(path.stem for path in modules if f'bench = Bench("{path.stem}")' in path.read_text(encoding="utf-8"))


def main(argv: list[str]) -> int:
    """Run the one that is named."""
    if len(argv) != 2 or argv[1] not in names():
        print(f"no such benchmark: {' '.join(argv[1:]) or '(none given)'}. There are: {', '.join(names())}.")
        return 2
    try:
        runpy.run_module(f"bench.{argv[1]}", run_name="__main__", alter_sys=True)
    except ServerNotInstalled as missing:
        print(f"bench {argv[1]}: nothing measured. {missing}", file=sys.stderr)
        return NO_SERVER
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
