"""Builds the disk of the virtual machine: interpreter, checkout and test programs in one ext4 image.

Uses ``mke2fs -d``, which needs no mount and no privileges. Paths in the guest are the same as on the host.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.cgroup_v2.systemd_unit import add_systemd

REPOSITORY = Path(__file__).resolve().parents[2]
GUEST_INIT = Path("/sbin/adjudge-init")
_SKIPPED = shutil.ignore_patterns(
    "site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "*.a", "config-3*"
)
_SKIPPED_PACKAGES = shutil.ignore_patterns(
    "mypy*", "*__mypyc*", "ruff*", "pip", "setuptools", "virtualenv", "__pycache__"
)
_TOOLS = ("python3", "sh", "cat", "sleep", "su", "true")
_USR_MERGED = ("bin", "sbin", "lib", "lib64")


def build(image: Path, staging: Path, programs: Path, size_mib: int = 1536) -> None:
    """Copy everything that the guest needs to ``staging``, then create ``image`` from it."""
    shutil.rmtree(staging, ignore_errors=True)
    _lay_out(staging)
    _copy_interpreter(staging)
    _copy_checkout(staging)
    shutil.copytree(programs, staging / "programs")
    _copy_tools(staging)
    add_systemd(staging)
    _copy_libraries(staging)
    _make_directories_accessible(staging)
    init = staging / GUEST_INIT.relative_to("/")
    body = (Path(__file__).parent / "guest_init.py").read_text()
    init.write_text(f"#!{_in_venv()}\n{body}")
    init.chmod(0o755)
    image.unlink(missing_ok=True)
    subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-d", str(staging), "-E", "root_owner=0:0", str(image), f"{size_mib}M"],
        check=True,
    )
    shutil.rmtree(staging)


def _in_venv() -> Path:
    return Path(sys.prefix) / "bin" / Path(sys.executable).name


def _lay_out(staging: Path) -> None:
    for name in (
        "dev",
        "proc",
        "sys",
        "etc",
        "root",
        "tmp",
        "run",
        "home",
        "var/tmp",
        "var/lib",
        "usr/bin",
        "usr/sbin",
    ):
        (staging / name).mkdir(parents=True)
    for name in ("usr/lib/x86_64-linux-gnu", "usr/lib64"):
        (staging / name).mkdir(parents=True)
    for name in _USR_MERGED:
        (staging / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "var/tmp"):
        (staging / name).chmod(0o1777)
    (staging / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (staging / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (staging / "etc/shadow").write_text("root:canary:19000:0:99999:7:::\n")
    (staging / "etc/shadow").chmod(0o600)
    (staging / "etc/hostname").write_text("cgroup2\n")
    (staging / "etc/hosts").write_text("127.0.0.1 localhost\n")
    cache = Path("/etc/ld.so.cache")
    if cache.exists():
        shutil.copy(cache, staging / "etc/ld.so.cache")


def _copy_interpreter(staging: Path) -> None:
    base = Path(sys.base_prefix)
    if base != Path("/usr"):
        _copy_tree(base, staging, _SKIPPED)
    system = Path("/usr/lib") / Path("/usr/bin/python3").resolve().name
    _copy_tree(system, staging, _SKIPPED)


def _copy_checkout(staging: Path) -> None:
    _copy_tree(Path(sys.prefix), staging, _SKIPPED_PACKAGES)
    for name in ("src", "tests"):
        _copy_tree(REPOSITORY / name, staging, shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", staging / REPOSITORY.relative_to("/") / "pyproject.toml")


def _make_directories_accessible(staging: Path) -> None:
    """Let an unprivileged user of the guest open the directories of the interpreter and the checkout."""
    for path in (Path(sys.base_prefix), Path(sys.prefix), REPOSITORY):
        for folder in (path, *path.parents):
            (staging / folder.relative_to("/")).chmod(0o755)


def _copy_tree(folder: Path, staging: Path, skipped: object) -> None:
    if not callable(skipped):
        raise TypeError("skipped must come from shutil.ignore_patterns")
    shutil.copytree(folder, staging / folder.relative_to("/"), symlinks=True, ignore=skipped, dirs_exist_ok=True)


def _copy_tools(staging: Path) -> None:
    for name in _TOOLS:
        found = Path("/usr/bin") / name
        for path in {found, found.resolve()}:
            shutil.copy2(path, staging / path.relative_to("/"), follow_symlinks=False)


def _copy_libraries(staging: Path) -> None:
    """Copy each shared library that a file in the image is linked with."""
    wanted = [path for path in staging.rglob("*") if path.is_file() and not path.is_symlink() and _is_linked(path)]
    for library in sorted(_needed(wanted)):
        target = staging / _merged(library).relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy2(library.resolve(), target)


def _merged(path: Path) -> Path:
    top = path.parts[1]
    return Path("/usr", *path.parts[1:]) if top in _USR_MERGED else path


def _is_linked(path: Path) -> bool:
    if not (path.suffix == ".so" or ".so." in path.name or path.stat().st_mode & 0o111):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _needed(paths: Iterable[Path]) -> set[Path]:
    found: set[Path] = set()
    for path in paths:
        listing = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        found |= {Path(match) for match in re.findall(r"(?:=> |^\s+)(/\S+)", listing, re.MULTILINE)}
    return {
        path
        for path in found
        if path.is_relative_to("/lib") or path.is_relative_to("/usr") or path.is_relative_to("/lib64")
    }
