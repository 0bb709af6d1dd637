"""Seed data: users, problems and a chain, with hostile text in every text field."""

from __future__ import annotations

from typing import Final

from tests.support.installation import Installation
from tests.support.problem_packages import YAML, icpc_package, zip_files

HOSTILE: Final = '<img src=x onerror="window.pwned=1;alert(1)"><script>window.pwned=1;alert(1)</script>\''
"""Run by a browser that takes it for more than text."""
SUM: Final = "print(sum(map(int, input().split())))\n"

CHAIN: Final = {
    "nodes": [
        {"id": "begin", "type": "noop"},
        {"id": "ask", "type": "wait_approval", "deps": ["begin"], "cfg": {"question": f"Go on? {HOSTILE}"}},
        {"id": "fragile", "type": "problem.verify", "deps": ["ask"], "cfg": {"problem": "{{ parameters.slug }}"}},
        {"id": "end", "type": "noop", "deps": ["fragile"]},
    ]
}


def seed(installation: Installation) -> None:
    """People, problems and a chain."""
    for role in ("contestant", "setter", "judge"):
        installation.user(role, role, display_name=HOSTILE)
    installation.publish(
        package_with_large_limits("Sum of two", **_tests(4)), slug="sum", title="Sum of two", tag=["adding"]
    )
    statement = f"{HOSTILE}\n\n<script>window.pwned=1</script>\n\n[x](javascript:alert(1)) $a<b$ {HOSTILE}\n"
    hostile = package_with_large_limits(
        "Hostile", **{"statement/problem.en.md": statement, "data/sample/1.in": f"1 2\n{HOSTILE}\n"}
    )
    installation.publish(hostile, slug="hostile", title=HOSTILE[:150], tag=["adding"])
    answer = installation.admin.post("/api/v1/chains", json={"name": "release", "description": HOSTILE, "dag": CHAIN})
    assert answer.status_code == 201, answer.text


def package_with_large_limits(title: str, **files: str) -> bytes:
    """A package whose limits no program meets here: how busy the machine is must not show in a verdict."""
    limits = {"problem.yaml": YAML.format(title=title) + "limits:\n  time_limit: 60.0\n"}
    return zip_files(icpc_package(title, **limits, **files))


def _tests(count: int) -> dict[str, str]:
    files: dict[str, str] = {}
    for number in range(1, count + 1):
        files[f"data/secret/{number}.in"] = f"{number} {number}\n"
        files[f"data/secret/{number}.ans"] = f"{2 * number}\n"
    return files
