"""The pins cover what the project asks for, with hashes and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _names(requirements: list[object]) -> set[str]:
    texts = [item for item in requirements if isinstance(item, str)]
    return {re.split(r"[^A-Za-z0-9._-]", text)[0].lower().replace("_", "-") for text in texts}


def _pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (LOCKS / lock).read_text(), re.MULTILINE))


def test_what_is_asked_for_is_pinned() -> None:
    run = _names(PROJECT["project"]["dependencies"]) | _names(PROJECT["dependency-groups"]["build"])
    dev = run | _names(PROJECT["dependency-groups"]["dev"])
    assert run <= set(_pins("run.txt")), "run `make lock`"
    assert dev <= set(_pins("dev.txt")), "run `make lock`"


def test_running_and_testing_use_the_same_versions() -> None:
    run, dev = _pins("run.txt"), _pins("dev.txt")
    assert {name: dev.get(name) for name in run} == run


@pytest.mark.parametrize("lock", sorted(path.name for path in LOCKS.glob("*.txt")))
def test_a_lock_holds_pins_with_hashes_and_no_address(lock: str) -> None:
    text = (LOCKS / lock).read_text()
    assert "://" not in text
    pins = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert pins
    assert not [pin.splitlines()[0] for pin in pins if "==" not in pin or "--hash=sha256:" not in pin]
