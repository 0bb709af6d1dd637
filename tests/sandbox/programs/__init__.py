"""Test programs and their build. The first line of each program says what it does."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_SOURCES = Path(__file__).parent
_FLAGS = ("-O1", "-static", "-pthread", "-Wall", "-Wextra", "-Werror")


def compile_all(folder: Path) -> Path:
    """Compile every C program into ``folder`` and copy the Python programs; readable by every user."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda source: _compile(source, folder / source.stem), sorted(_SOURCES.glob("*.c"))))
    for source in _SOURCES.glob("*.py"):
        if source.name != "__init__.py":
            shutil.copy(source, folder / source.name)
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


def _compile(source: Path, target: Path) -> None:
    done = subprocess.run(
        [os.environ.get("CC", "cc"), *_FLAGS, "-o", str(target), str(source), "-lrt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")


def source_digest() -> str:
    """Digest of flags and sources."""
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for source in sorted(_SOURCES.iterdir()):
        if source.suffix in (".c", ".h", ".py"):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def ready(cache: Path) -> Path:
    """Directory of the compiled programs: ``ADJUDGE_TEST_PROGRAMS``, or a cached build."""
    given = os.environ.get("ADJUDGE_TEST_PROGRAMS")
    if given:
        return Path(given)
    target = cache / f"programs-{source_digest()}"
    if not target.exists():
        partial = cache / f"programs-{os.getpid()}.partial"
        compile_all(partial)
        try:
            partial.rename(target)
        except OSError:  # another process has built them
            shutil.rmtree(partial)
    return target
