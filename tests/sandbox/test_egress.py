"""The one way out of a box, if asked for: what is listed is reached, nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.host import Host

REPOSITORY = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("unharmed")


def test_an_allowed_host_is_reached_and_no_other(host: Host) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.egress_world", str(host.state / "egress")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verdict"] == "OK", told
    assert told["reached"] == {
        "the allowed host and port": "hello from allowed",
        "once more": "hello from allowed",
        "another port": "ConnectionRefusedError",
        "another host by name": "gaierror",
        "another host by address": "ConnectionRefusedError",
        "the real address": "ConnectionRefusedError",
        "an address without a route": "OSError",
        "datagrams": "OSError",
        "the newer protocol": "OSError",
    }
    assert told["heard"] == {"allowed": 2, "other port": 0, "other host": 0}
