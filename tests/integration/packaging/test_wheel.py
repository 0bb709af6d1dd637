"""The wheel: built from a copy of the sources, installed into a new virtual environment, and used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from adjudge import __version__
from tests.support.install import ROOT
from tests.support.installation import AdjudgeProcess, environment_of

pytestmark = pytest.mark.slow
SOURCES = ("src", "launcher", "frontend", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns("node_modules", "__pycache__", "bundle", "adjudge-box", "*.pyc")


def copy_sources(folder: Path) -> Path:
    """Only what is in the repository: other tests use the built files in the working directory."""
    folder.mkdir()
    for name in SOURCES:
        source = ROOT / name
        shutil.copytree(source, folder / name, ignore=BUILT) if source.is_dir() else shutil.copy(source, folder / name)
    return folder


def build(sources: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(sources / "dist")]
    env = {**os.environ, "ADJUDGE_BUILD_COMPLETE": "1", **environment}
    return subprocess.run(argv, cwd=sources, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = copy_sources(tmp_path_factory.mktemp("wheel") / "sources")
    done = build(sources)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (sources / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The interpreter of a virtual environment in which the wheel is installed with the pinned requirements."""
    environment = wheel.parent.parent / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    interpreter = environment / "bin" / "python"
    uv = Path(sys.prefix) / "bin" / "uv"
    install = [str(uv), "pip", "install", "--python", str(interpreter)] if uv.exists() else None
    install = install or [str(interpreter), "-m", "pip", "install"]
    for arguments in (["--require-hashes", "-r", str(ROOT / "requirements" / "run.txt")], ["--no-deps", str(wheel)]):
        done = subprocess.run([*install, "--quiet", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return interpreter


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(python.parent / "adjudge"), *arguments]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def test_wheel_has_launcher_and_page_bundle(wheel: Path) -> None:
    assert re.search(r"-py3-none-linux_\w+\.whl$", wheel.name)
    with ZipFile(wheel) as archive:
        files = {item.filename: item for item in archive.infolist()}
    assert (files["adjudge/sandbox/bin/adjudge-box"].external_attr >> 16) & 0o111, "the launcher is executable"
    assert "adjudge/web/static/bundle/editor.js" in files
    assert "adjudge/judge/languages.toml" in files
    assert any(name.endswith("0001_baseline.postgresql.sql") for name in files)
    assert not [name for name in files if name.startswith(("tests/", "launcher/", "frontend/"))]


def test_build_without_compiler_fails_if_it_must_be_complete(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("node", "npm"):
        (tools / name).symlink_to(shutil.which(name) or "/nonexistent")
    (tools / "sh").symlink_to("/bin/sh")
    (tools / "env").symlink_to("/usr/bin/env")
    done = build(copy_sources(tmp_path / "sources"), PATH=str(tools), CC="no-such-compiler")
    assert done.returncode != 0
    assert "built without its sandbox launcher: no C compiler was found" in done.stderr + done.stdout


def test_installed_wheel_runs_programs_in_the_sandbox(python: Path, tmp_path: Path) -> None:
    assert __version__ in run(python, tmp_path, "--version").stdout
    report = json.loads(run(python, tmp_path, "doctor", "--json").stdout)
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert states["launcher"] == "ok", report
    done = run(python, tmp_path, "run", "--unsafe", "--", "/bin/echo", "from the sandbox")
    assert "from the sandbox" in done.stdout, done.stderr


def test_installed_wheel_serves_pages_with_their_bundle(python: Path, tmp_path: Path) -> None:
    server = AdjudgeProcess(["up"], environment_of(tmp_path), tmp_path, str(python))
    try:
        url = server.wait_for("Adjudge is running at ")
        with httpx.Client(base_url=url) as client:
            page = client.get("/problems")
            assert page.status_code == 200
            scripts = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
            assert scripts
            assert all(client.get(path).status_code == 200 for path in scripts)
            editor = client.get("/static/any/bundle/editor.js")
            assert editor.status_code == 200
            assert editor.headers["Content-Type"].startswith(("text/javascript", "application/javascript"))
            chunks = re.findall(r"""from\s*["']\./([\w.-]+)["']""", editor.text)
            assert all(client.get(f"/static/any/bundle/{name}").status_code == 200 for name in chunks)
    finally:
        server.stop()
