"""Validation of specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.sandbox import Egress, InputFile, Limits, Mount, SandboxRunSpec

ARGV = ("/bin/true",)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "..", "../x", "a/../b", "a//b", "./a", "a/.", "a\0b", "n" * 256, "d/" * 600 + "x"]
)
def test_name_outside_work_directory_is_rejected(name: str) -> None:
    with pytest.raises(InvalidInput, match="files"):
        InputFile(name, b"")
    with pytest.raises(InvalidInput, match="collect"):
        SandboxRunSpec(argv=ARGV, collect=(name,), collect_to=Path("/tmp"))


@pytest.mark.parametrize("name", ["a", "a/b/c", "-rf", "a b", "a\nb", "…", "x..y", ".hidden"])
def test_unusual_name_is_accepted(name: str) -> None:
    assert InputFile(name, b"").name == name


@pytest.mark.parametrize(
    "argv", [(), ("",), ("/bin/sh", "a\0b"), ("../../bin/sh",), ("/work/../usr/bin/id",), ("/bin/true", "x" * 131_072)]
)
def test_invalid_argv_is_rejected(argv: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="argv"):
        SandboxRunSpec(argv=argv)


def test_shell_characters_are_accepted_in_argv() -> None:
    argv = ("/bin/echo", "; rm -rf /", "$(id)", "`id`", "| cat", "\n", "../up")
    assert SandboxRunSpec(argv=argv).argv == argv


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "x\0"}, {"A\0": "x"}])
def test_invalid_variable_is_rejected(env: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="env"):
        SandboxRunSpec(argv=ARGV, env=env)


def test_total_size_of_argv_and_env_is_limited() -> None:
    with pytest.raises(InvalidInput, match="together"):
        SandboxRunSpec(argv=("/bin/true", *(["x" * 100_000] * 11)))


@pytest.mark.parametrize("target", ["data", "/", "/proc/x", "/dev/null", "/etc", "/work", "/a/../b", "/a//b", "/a\0"])
def test_reserved_or_invalid_mount_target_is_rejected(target: str) -> None:
    with pytest.raises(InvalidInput, match="mounts"):
        Mount(Path("/srv"), target)


def test_relative_mount_source_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="relative"):
        Mount(Path("data"), "/data")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"job_id": 'x"y'}, "job_id"),
        ({"job_id": "x" * 129}, "job_id"),
        ({"attempt_id": -1}, "attempt_id"),
        ({"collect": ("out",)}, "collect_to"),
        ({"stdin": b"123456", "limits": Limits(input_bytes=5)}, "stdin"),
        ({"files": (InputFile("a", b""), InputFile("a", b""))}, "files"),
        ({"mounts": (Mount(Path("/srv"), "/a"), Mount(Path("/srv"), "/a"))}, "mounts"),
        ({"egress": tuple(Egress("host", port) for port in range(1, 18))}, "egress"),
    ],
)
def test_error_names_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        SandboxRunSpec(argv=ARGV, **changes)  # type: ignore[arg-type]  # one of many fields
    assert caught.value.fields["field"] == field
    assert field in caught.value.message


@pytest.mark.parametrize(("host", "port"), [("", 1), ("a b", 1), ("a/b", 1), ("host", 0), ("host", 65_536)])
def test_invalid_egress_is_rejected(host: str, port: int) -> None:
    with pytest.raises(InvalidInput, match="egress"):
        Egress(host, port)
