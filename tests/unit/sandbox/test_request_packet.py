"""Request packets: encoding, descriptors, and that none stays open."""

from __future__ import annotations

import os
import struct
from contextlib import closing
from pathlib import Path

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.sandbox import MERGE, InputFile, Limits, SandboxRunSpec
from adjudge.sandbox.request_packet import (
    INLINE_BYTES_MAX,
    MAGIC,
    PACKET_BYTES_MAX,
    TYPE_IN_FD,
    TYPE_RUN,
    RequestPacket,
    check_executable_exists,
)


def records(message: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 8
    while at < len(message):
        tag, zero, size = struct.unpack_from("<HHI", message, at)
        assert zero == 0
        found.append((tag, message[at + 8 : at + 8 + size]))
        at += 8 + size
    return found


def open_fds() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_plain_request_has_no_descriptor() -> None:
    with closing(
        RequestPacket(SandboxRunSpec(argv=("/bin/true", "x"), env={"A": "b"}, job_id="j", attempt_id=3))
    ) as packet:
        message = packet.message()
    assert struct.unpack_from("<IHH", message) == (MAGIC, TYPE_RUN, 0)
    assert [tag for tag, _ in records(message)] == [1, 2, 3, 4, 4, 5]
    assert dict(records(message))[5] == b"A=b\0"
    assert packet.fds == []


def test_limits_are_encoded_in_declaration_order() -> None:
    limits = Limits(cpu_ms=1, wall_ms=2, memory_bytes=3, processes=4, open_files=5, file_bytes=6, output_bytes=7,
                    input_bytes=8, work_bytes=9, work_inodes=10, stack_bytes=11)  # fmt: skip
    with closing(RequestPacket(SandboxRunSpec(argv=("x",), limits=limits))) as packet:
        assert struct.unpack("<11Q", dict(records(packet.message()))[3]) == tuple(range(1, 12))


def test_close_closes_all_descriptors(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"data")
    before = open_fds()
    spec = SandboxRunSpec(
        argv=("x",),
        stdin=b"input",
        stdout=tmp_path / "out",
        stderr=MERGE,
        files=(InputFile("a", tmp_path / "in"), InputFile("b", b"y" * (INLINE_BYTES_MAX + 1)), InputFile("c", b"z")),
        collect=("o",),
        collect_to=tmp_path,
    )
    with closing(RequestPacket(spec)) as packet:
        assert len(packet.fds) == 5
        assert packet.message()
    assert open_fds() == before


def test_missing_file_leaks_no_descriptor(tmp_path: Path) -> None:
    before = open_fds()
    spec = SandboxRunSpec(argv=("x",), stdin=b"input", files=(InputFile("a", tmp_path / "missing"),))
    with pytest.raises(InvalidInput, match="missing"):
        RequestPacket(spec)
    assert open_fds() == before


def test_stdin_bytes_are_sealed() -> None:
    with closing(RequestPacket(SandboxRunSpec(argv=("x",), stdin=b"input"))) as packet, pytest.raises(PermissionError):
        os.write(packet.fds[0], b"changed")


def test_stdin_descriptor_of_regular_file_is_copied_from_its_offset(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"0123456789")
    with (tmp_path / "in").open("rb", buffering=0) as source:
        source.read(4)
        with closing(RequestPacket(SandboxRunSpec(argv=("x",), stdin=source.fileno()))) as packet:
            assert packet.fds[0] != source.fileno()
            assert os.read(packet.fds[0], 100) == b"456789"


@pytest.mark.parametrize("as_path", [True, False])
def test_stdin_file_over_limit_is_rejected(tmp_path: Path, as_path: bool) -> None:
    (tmp_path / "in").write_bytes(b"0123456789")
    with (tmp_path / "in").open("rb") as source:
        spec = SandboxRunSpec(
            argv=("x",), stdin=tmp_path / "in" if as_path else source.fileno(), limits=Limits(input_bytes=9)
        )
        with pytest.raises(InvalidInput, match="over the limit"):
            RequestPacket(spec)


def test_executable_is_bind_mounted_and_other_files_are_opened(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"#!/bin/true\n")
    for executable, tag, descriptors in ((True, 11, 0), (False, 9, 1)):
        with closing(
            RequestPacket(SandboxRunSpec(argv=("x",), files=(InputFile("p", program, executable),)))
        ) as packet:
            assert records(packet.message())[-1][0] == tag
            assert len(packet.fds) == descriptors


def test_missing_executable_is_invalid_input(tmp_path: Path) -> None:
    check_executable_exists(InputFile("inline", b"data", executable=True))
    check_executable_exists(InputFile("folder", tmp_path, executable=True))
    with pytest.raises(InvalidInput, match="missing cannot be opened: No such file"):
        check_executable_exists(InputFile("p", tmp_path / "missing", executable=True))


def test_long_request_is_sent_in_memfd() -> None:
    with closing(RequestPacket(SandboxRunSpec(argv=("x", *["y" * 100_000] * 2)))) as packet:
        message = packet.message()
        assert struct.unpack("<IHH", message) == (MAGIC, TYPE_IN_FD, 1)
        assert os.fstat(packet.fds[0]).st_size > PACKET_BYTES_MAX
