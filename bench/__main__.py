"""``python -m bench NAME`` runs one benchmark; without a known name it lists them.

A benchmark is a module of this package that creates a ``Bench`` with its own name; the other modules are helpers.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tests.support.server_process import ServerNotInstalled

NO_SERVER = 3
"""The exit code if a server that the benchmark needs is not installed."""
ALIASES = {"drive": "queue"}
"""Former names that still work."""


def names() -> list[str]:
    """Return the names of all benchmarks."""
    modules = Path(__file__).parent.glob("*.py")
    return sorted(path.stem for path in modules if f'bench = Bench("{path.stem}")' in path.read_text(encoding="utf-8"))


def main(argv: list[str]) -> int:
    """Run the benchmark that is named."""
    name = ALIASES.get(argv[1], argv[1]) if len(argv) == 2 else None
    if name not in names():
        print(f"no such benchmark: {' '.join(argv[1:]) or '(none given)'}. There are: {', '.join(names())}.")
        return 2
    try:
        runpy.run_module(f"bench.{name}", run_name="__main__", alter_sys=True)
    except ServerNotInstalled as missing:
        print(f"bench {name}: nothing measured. {missing}", file=sys.stderr)
        return NO_SERVER
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
