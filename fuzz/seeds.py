"""Initial inputs for the fuzzers: valid requests and reports."""

from __future__ import annotations

import json
import struct
from pathlib import Path

MAGIC = 0x314A4441
LIMITS = (1_000, 2_000, 1 << 26, 8, 64, 1 << 20, 1 << 16, 1 << 20, 1 << 20, 64, 0)
REPORT = {
    "schema_version": 1, "job_id": "job", "attempt_id": 1, "verdict": "OK", "time_ms": 3, "mem_kb": 900,
    "exit_signal": 0, "sandbox_error": "", "error": "", "error_step": "", "error_errno": 0, "error_index": -1,
    "status": "Finished", "time_used": 3, "memory_used": 900, "exit_code": 0, "time_us": 3_100, "wall_ms": 4,
    "wall_us": 4_200, "ended_ns": 1 << 40, "limit": "", "memory_source": "cgroup1", "processes_refused": False,
    "output_bytes": 5, "stdout_bytes": 5, "stderr_bytes": 0, "stdout_truncated": False, "stderr_truncated": False,
    "collected": [],
}  # fmt: skip
"""In the order of the launcher, so that the fast parser accepts it."""


def _record(tag: int, body: bytes) -> bytes:
    return struct.pack("<HHI", tag, 0, len(body)) + body


def _u32(value: int) -> bytes:
    return struct.pack("<I", value)


def requests() -> list[bytes]:
    """One request of each type, and one with every record."""
    limits = _record(3, struct.pack("<11Q", *LIMITS))
    plain = limits + _record(4, b"/work/a.out\0")
    full = _record(1, b"job-1:2_3.4\0") + _record(2, struct.pack("<Q", 7)) + plain
    full += (
        _record(5, b"LANG=C\0") + _record(6, _u32(1) + _u32(0)) + _record(7, _u32(1) + _u32(1)) + _record(8, _u32(2))
    )
    full += _record(9, _u32(0) + _u32(2) + b"in.txt\0") + _record(10, _u32(1) + b"dir/x\0some bytes")
    full += _record(11, _u32(1) + b"/usr/bin/true\0a.out\0") + _record(12, _u32(0) + b"/srv\0/data\0")
    full += _record(13, b"out/one\0") + _record(14, _u32(3)) + _record(15, _u32(443) + b"127.1.0.1\0example.test\0")
    by_path = _record(6, _u32(2) + b"/dev/null\0") + plain
    kinds = ((1, 0, plain), (1, 4, full), (1, 0, by_path), (2, 0, b""), (3, 1, b""))
    return [struct.pack("<IHH", MAGIC, kind, descriptors) + body for kind, descriptors, body in kinds]


def reports() -> list[bytes]:
    """Valid reports, one system error, one over a limit; the first byte tells the fuzzer to use them unchanged."""
    full = REPORT | {"collected": [[1, 4, 0], [0, 0, 2]]}
    fault = REPORT | {"verdict": "SE", "status": "System Error", "sandbox_error": "exec", "error_step": "exec"}
    slow = REPORT | {
        "verdict": "TLE",
        "status": "Time Limit Exceeded",
        "limit": "cpu",
        "exit_signal": 9,
        "exit_code": -1,
    }
    bodies = (REPORT, full, fault, slow)
    return [b"\0" + json.dumps(body, separators=(",", ":")).encode() + b"\n" for body in bodies]


def write(folder: Path, bodies: list[bytes]) -> Path:
    """Write each seed to its own file."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(bodies):
        (folder / f"seed-{number}").write_bytes(body)
    return folder
