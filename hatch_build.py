"""Build hook: compiles the sandbox launcher and bundles the editor of the pages into the package.

``python hatch_build.py`` does the same for developers. Where there is no C compiler the build still succeeds and the
sandbox says what to install when it is asked to run something; where there is no Node, pages have a plain text area.
With ``ADJUDGE_BUILD_COMPLETE=1``, as ``make build`` sets it, the build fails instead: a wheel that others install must
have both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
LAUNCHER = ROOT / "launcher"
BINARY = ROOT / "src" / "adjudge" / "sandbox" / "bin" / "adjudge-box"
FRONTEND = ROOT / "frontend"
BUNDLE = ROOT / "src" / "adjudge" / "web" / "static" / "bundle" / "editor.js"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
HARDENING = ("-O2", "-pthread", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fPIE", "-Wl,-z,relro,-z,now")
REQUIRE = "ADJUDGE_BUILD_COMPLETE"
LINKS = (("-static-pie",), ("-pie",))
"""A static program forks faster and needs nothing of the host; not every system has a static C library."""


def compile_launcher(target: Path = BINARY) -> str:
    """Compile ``launcher/*.c``; gives an empty string, or why there is no launcher."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "no C compiler was found (install gcc, then run: python hatch_build.py)"
    if not sys.platform.startswith("linux"):
        return "the sandbox needs Linux"
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    sources = sorted(str(path) for path in LAUNCHER.glob("*.c"))
    output = ""
    for link in LINKS:
        command = [compiler, "-std=gnu17", "-D_GNU_SOURCE", *WARNINGS, *HARDENING, *link, "-o", str(fresh), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # argv of our own
        if done.returncode == 0:
            fresh.replace(target)
            return ""
        output = done.stderr
    return f"the launcher did not compile:\n{output}"


def bundle_editor() -> str:
    """Bundle what pages take from npm; gives an empty string, or why there is no bundle."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm was not found (install Node, then run: python hatch_build.py)"
    shutil.rmtree(BUNDLE.parent, ignore_errors=True)
    for arguments in (("ci", "--ignore-scripts", "--silent"), ("run", "--silent", "build")):
        done = subprocess.run([npm, *arguments], cwd=FRONTEND, capture_output=True, text=True, check=False)  # noqa: S603  # argv of our own
        if done.returncode:
            return f"npm {arguments[0]} failed:\n{done.stderr or done.stdout}"
    return ""


def main() -> int:
    """Rebuild for developers."""
    problems = {BINARY: compile_launcher(), BUNDLE: bundle_editor()}
    for made, problem in problems.items():
        sys.stdout.write(f"{problem or made}\n")
    return 1 if any(problems.values()) else 0


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run directly, where the build backend need not be installed
    pass
else:

    class CustomBuildHook(BuildHookInterface[Any]):
        """Puts the launcher and the bundle into the wheel, which is then for this platform, yet for every Python."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatchling's signature
            """Compile before the files are gathered."""
            if self.target_name != "wheel":
                return
            if problem := bundle_editor():
                self._report(f"adjudge is built without the editor of its pages: {problem}")
            if problem := compile_launcher():
                self._report(f"adjudge is built without its sandbox launcher: {problem}")
                return
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

        def _report(self, problem: str) -> None:
            if os.environ.get(REQUIRE) == "1":
                raise SystemExit(f"{REQUIRE}=1: {problem}")
            self.app.display_warning(problem)


if __name__ == "__main__":
    raise SystemExit(main())
