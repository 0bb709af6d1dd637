"""The command line in forked processes: a server imports it once, and each call is a fork of the server.

This avoids the start of an interpreter per call.

Run as a program, the module is the server: it reads one line of JSON per call (arguments and files for the three
streams) and writes the exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

import adjudge.cli


class ForkedCli:
    """Client of the server, with an interface like ``subprocess.run([\"adjudge\", …])``."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.sandbox.forked_cli"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run ``adjudge`` with these arguments in a new process."""
        if self._server.stdin is None or self._server.stdout is None:
            raise RuntimeError("the server has no pipes")
        with tempfile.TemporaryDirectory(prefix="adjudge-cli-") as folder:
            streams = [str(Path(folder) / name) for name in ("stdin", "stdout", "stderr")]
            Path(streams[0]).write_bytes(stdin)
            self._server.stdin.write(json.dumps({"arguments": arguments, "streams": streams}) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            outputs = [Path(stream).read_bytes() for stream in streams[1:]]
        return subprocess.CompletedProcess(arguments, code, *outputs)

    def close(self) -> None:
        """Stop the server."""
        if self._server.stdin is not None and self._server.stdout is not None:
            self._server.stdin.close()
            self._server.stdout.close()
        self._server.wait()


def _run_command(request: Mapping[str, list[str]]) -> int:
    """Run the command line in this process; return its exit code."""
    for number, path in enumerate(request["streams"]):
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    try:
        adjudge.cli.main(request["arguments"], prog_name="adjudge")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException:  # noqa: BLE001  # the forked process must not continue as the server
        traceback.print_exc()
        return -1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def serve() -> None:
    """Fork for every request until stdin is closed."""
    for name in ("run", "doctor"):
        adjudge.cli.COMMANDS[name].load()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_run_command(json.loads(line)))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
