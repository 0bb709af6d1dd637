"""Runs in DMOJ's own environment: reads lines of ``stdin-file<TAB>argv…`` and runs each in DMOJ's tracer."""

# mypy: ignore-errors
# (it imports a package of another environment)

import os
import sys

from dmoj.cptbox import IsolateTracer, TracedPopen
from dmoj.cptbox.filesystem_policies import RecursiveDir


def main() -> None:
    everything = [RecursiveDir("/usr"), RecursiveDir("/lib"), RecursiveDir("/lib64"), RecursiveDir("/etc"),
                  RecursiveDir("/proc"), RecursiveDir("/dev"), RecursiveDir("/work")]  # fmt: skip
    print("ready", flush=True)
    for line in sys.stdin:
        source, *argv = line.rstrip("\n").split("\t")
        with open(source, "rb") as stdin, open(os.devnull, "wb") as sink:  # noqa: PTH123
            process = TracedPopen(
                [part.encode() for part in argv],
                executable=argv[0].encode(),
                security=IsolateTracer(read_fs=everything, write_fs=everything),
                time=30,
                memory=262_144,
                stdin=stdin.fileno(),
                stdout=sink.fileno(),
                stderr=sink.fileno(),
                env={},
                nproc=-1,
                fsize=-1,
            )
            process.wait()
        print("done" if process.returncode == 0 else f"failed {process.returncode}", flush=True)


if __name__ == "__main__":
    main()
