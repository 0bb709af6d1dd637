"""``make fuzz``: runs all fuzzers one after the other, each for a limited time; exits with 1 if one finds a failure.

Failing inputs and corpora are stored in ``.cache/fuzz``. Missing tools are installed: clang with its runtime for the
request parser, atheris in a separate environment for the report parser. The package readers are fuzzed by mutation
only (``fuzz/packages.py``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import seeds

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / ".cache" / "fuzz"
_SANITIZERS = "-fsanitize=fuzzer,address,undefined"
_ATHERIS = "atheris==3.0.0"


def main() -> int:
    """Run the selected fuzzers."""
    options = _options()
    targets = {"request": fuzz_requests, "report": fuzz_reports, "packages": fuzz_packages}
    results = {name: run(options.seconds) for name, run in targets.items() if options.only in (None, name)}
    for name, code in results.items():
        sys.stdout.write(f"fuzz {name}: {'no failures' if code == 0 else f'FAILED ({code})'}\n")
    return 1 if any(results.values()) else 0


def fuzz_requests(seconds: int) -> int:
    """Run libFuzzer with the address and undefined behavior sanitizers on the request parser (C)."""
    _install_clang()
    work = CACHE / "request"
    corpus = seeds.write(work / "corpus", seeds.requests())
    program = work / "fuzzer"
    sources = [str(REPOSITORY / "fuzz/request_fuzzer.c"), str(REPOSITORY / "launcher/request.c")]
    flags = ["-g", "-O1", _SANITIZERS, "-fno-sanitize-recover=all", "-D_GNU_SOURCE", f"-I{REPOSITORY / 'launcher'}"]
    subprocess.run(["clang", *flags, "-o", str(program), *sources], check=True)
    argv = [
        str(program),
        str(corpus),
        f"-max_total_time={seconds}",
        "-max_len=65536",
        f"-artifact_prefix={work}/found-",
    ]
    return subprocess.run([*argv, "-print_final_stats=1", "-verbosity=1"], check=False).returncode


def fuzz_reports(seconds: int) -> int:
    """Run atheris on the report parser (Python)."""
    python = _atheris_environment()
    work = CACHE / "report"
    corpus = seeds.write(work / "corpus", seeds.reports())
    argv = [str(python), str(REPOSITORY / "fuzz/report_fuzzer.py"), str(corpus), f"-max_total_time={seconds}"]
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    extra = ["-max_len=4096", f"-artifact_prefix={work}/found-", "-print_final_stats=1"]
    return subprocess.run([*argv, *extra], env=environment, check=False).returncode


def fuzz_packages(seconds: int) -> int:
    """Read mutated problem packages; a failure is printed with its seed."""
    argv = [sys.executable, "-m", "fuzz.packages", "--seconds", str(seconds)]
    return subprocess.run(argv, cwd=REPOSITORY, check=False).returncode


def _install_clang() -> None:
    if shutil.which("clang") and any(Path("/usr/lib").glob("llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer*")):
        return
    if not shutil.which("apt-get"):
        raise SystemExit("clang with libFuzzer is missing: install clang and its compiler runtime (libclang-rt-dev)")
    subprocess.run(["apt-get", "update", "-q"], check=True)
    packages = ["clang", "libclang-rt-14-dev"]
    subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages], check=True)


def _atheris_environment() -> Path:
    """Return the interpreter of an environment with our packages and atheris."""
    folder = CACHE / "environment"
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        site = next(folder.glob("lib/python*/site-packages"))
        ours = Path(sys.prefix) / "lib" / site.parent.name / "site-packages"
        (site / "adjudge.pth").write_text(f"{ours}\n")
        subprocess.run([str(python), "-m", "pip", "install", "-q", _ATHERIS], check=True)
        (folder / "ready").touch()
    return python


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="time for each fuzzer (default 30)")
    parser.add_argument("--only", choices=("request", "report", "packages"), help="run one fuzzer")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
