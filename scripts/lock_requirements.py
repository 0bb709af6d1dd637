"""Pin every package that is installed, with hashes: ``make lock``.

Writes ``requirements/{run,dev,test-servers,uv}.txt`` by ``uv pip compile``. Addresses of registries and paths of this
machine never get into the files: a lock names packages, versions and hashes, and works with any mirror.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
HEADER = "# Written by `make lock`: change pyproject.toml or requirements/*.in, then run it again.\n"
LOCKED: dict[str, tuple[str, ...]] = {
    "run": ("pyproject.toml", "--group", "build"),
    "dev": ("pyproject.toml", "--group", "dev", "--constraint", "requirements/run.txt"),
    "test-servers": ("requirements/test-servers.in", "--no-deps"),
    "uv": ("requirements/uv.in",),
}
"""Lock → what it is compiled from. Of the services only the binaries are used, so their Python dependencies are not."""
OPTIONS = (
    *("--universal", "--generate-hashes", "--python-version", "3.11"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate", "--quiet"),
)


def lock(name: str, sources: tuple[str, ...], *, upgrade: bool) -> None:
    """Compile one file; pins already in it stay unless ``upgrade`` is asked for."""
    target = LOCKS / f"{name}.txt"
    if upgrade:
        target.unlink(missing_ok=True)
    uv = Path(sys.executable).parent / "uv"
    argv = [str(uv), "pip", "compile", *OPTIONS, *sources, "--output-file", str(target.relative_to(ROOT))]
    subprocess.run(argv, cwd=ROOT, check=True)
    body = [line for line in target.read_text(encoding="utf-8").splitlines() if not line.startswith(("#", "--"))]
    target.write_text(HEADER + "\n".join(body) + "\n", encoding="utf-8")
    print(f"• {target.relative_to(ROOT)}: {sum('==' in line for line in body)} packages", flush=True)


def main() -> None:
    """Lock everything; ``--upgrade`` takes the newest versions that fit."""
    for name, sources in LOCKED.items():
        lock(name, sources, upgrade="--upgrade" in sys.argv[1:])


if __name__ == "__main__":
    main()
