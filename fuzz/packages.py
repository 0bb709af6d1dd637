"""Fuzzing of the package readers: every input must be read or rejected with an error of Adjudge.

A package of each format is mutated (bytes, lines, keywords of the format, files removed or exchanged) and read as a
directory and as a damaged ZIP. Any exception other than ``AdjudgeError`` is a failure. The tests run it
for a short time; ``python -m fuzz.packages --seconds 60`` runs it longer.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from adjudge.domain.errors import AdjudgeError
from adjudge.packages.archive import open_package
from adjudge.packages.archive_limits import ArchiveLimits
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.export import export_icpc
from adjudge.packages.load import check_test_files, read_package
from fuzz.package_seeds import SEEDS, WORDS

Contents = dict[str, bytes]
_LIMITS = ArchiveLimits(entries=2_000, total_bytes=1 << 24, file_bytes=1 << 22, ratio_floor_bytes=1 << 22)


def mutated(random_: random.Random, contents: Contents) -> Contents:
    """Return a copy of the package with one to four changes."""
    found = dict(contents)
    for _ in range(random_.randint(1, 4)):
        name = random_.choice(sorted(found))
        change = random_.choice([_bytes, _word, _line, _cut, _double])
        kind = random_.random()
        if kind < 0.05 and len(found) > 1:
            del found[name]
        elif kind < 0.1:
            found[random_.choice(sorted(found))] = found[name]
        else:
            found[name] = change(random_, found[name])
    return found


def _bytes(random_: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(random_.randint(1, 8)):
        changed[random_.randrange(len(changed))] = random_.randrange(256)
    return bytes(changed)


def _word(random_: random.Random, data: bytes) -> bytes:
    at = random_.randrange(len(data) + 1)
    return data[:at] + random_.choice(WORDS) + data[at + random_.choice([0, 0, 1, 5]) :]


def _line(random_: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    lines.insert(random_.randrange(len(lines) + 1), random_.choice(lines + list(WORDS)))
    if random_.random() < 0.2:
        random_.shuffle(lines)
    return b"\n".join(lines)


def _cut(random_: random.Random, data: bytes) -> bytes:
    return data[: random_.randrange(len(data) + 1)]


def _double(random_: random.Random, data: bytes) -> bytes:
    return data * random_.choice([2, 3, 50]) if len(data) < 10_000 else data


def read_files(contents: Contents, scratch: Path) -> None:
    """Read a package from files, then export it if it has no errors."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        found = {}
        for number, (path, data) in enumerate(contents.items()):
            found[path] = folder / str(number)
            found[path].write_bytes(data)
        findings = Findings()
        try:
            package = read_package(PackageFiles(found, folder / "derived"), "fuzz", findings)
            check_test_files(package, findings)
            if not findings.has_errors:
                export_icpc(package.problem, Findings())
        except AdjudgeError:
            return


def read_archive(random_: random.Random, contents: Contents, scratch: Path) -> None:
    """Read a package from a damaged ZIP."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", random_.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        path = Path(name) / "fuzz.zip"
        path.write_bytes(random_.choice([_bytes, _cut])(random_, buffer.getvalue()))
        try:
            with open_package(path, _LIMITS, Path(name)) as files:
                read_package(files, "fuzz", Findings())
        except AdjudgeError:
            return


def step(seed: int, scratch: Path) -> None:
    """Read one package, which depends only on the seed, so that a failure can be reproduced."""
    random_ = random.Random(seed)  # noqa: S311  # must be reproducible
    contents = SEEDS[seed % len(SEEDS)]
    if random_.random() < 0.2:
        read_archive(random_, contents, scratch)
    else:
        read_files(mutated(random_, contents), scratch)


def run(seconds: float, first: int, note: Callable[[str], object]) -> int:
    """Run for a time; return the number of failures."""
    until = time.monotonic() + seconds
    seed, broken = first, 0
    with tempfile.TemporaryDirectory(prefix="adjudge-fuzz-") as scratch:
        while time.monotonic() < until:
            started = time.monotonic()
            try:
                step(seed, Path(scratch))
            except Exception as error:  # noqa: BLE001  # any exception other than AdjudgeError is a failure
                broken += 1
                note(f"seed {seed}: {type(error).__name__}: {error}")
            if time.monotonic() - started > 5:
                broken += 1
                note(f"seed {seed}: took {time.monotonic() - started:.1f} s")
            seed += 1
    note(f"{seed - first} packages, {broken} failures")
    return broken


def main() -> int:
    """Run with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=random.SystemRandom().randrange(1 << 40))
    options = parser.parse_args()
    return 1 if run(options.seconds, options.first, lambda text: sys.stdout.write(f"{text}\n")) else 0


if __name__ == "__main__":
    sys.exit(main())
