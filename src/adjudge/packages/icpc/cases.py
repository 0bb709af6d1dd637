"""Test cases of an ICPC package: the files that share a base name."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass

from adjudge.domain.programs import FileRef
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.safe_yaml import YamlMap, YamlSection, parse_yaml

DATA = "data"
NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,254}")
GROUP_FILES = ("test_group.yaml", "testdata.yaml")
_CASE_KEYS = (
    "args",
    "input_validator_args",
    "output_validator_args",
    "input_visualizer_args",
    "output_visualizer_args",
    "full_feedback",
    "hint",
    "description",
)


@dataclass(frozen=True, slots=True)
class RawCase:
    """The files of one case, before its group's settings are applied."""

    name: str
    input: str
    answer: str | None
    files: tuple[FileRef, ...]
    settings: YamlSection
    args: tuple[str, ...]
    description: str
    hint: str


def is_case_input(name: str) -> bool:
    return name.endswith(".in") and NAME.fullmatch(posixpath.basename(name)) is not None


def folders(files: PackageFiles, folder: str) -> list[str]:
    """The folders of test data below a folder; folders of a single test's files are excluded."""
    return [
        child
        for child in files.children(folder)
        if f"{folder}/{child}" not in files and not child.endswith(".files") and NAME.fullmatch(child)
    ]


def case_names(files: PackageFiles, folder: str, *, deep: bool = False) -> list[str]:
    """The base names of the cases directly in a folder (with ``deep``, anywhere below it), sorted."""
    result = []
    for name in files.names(folder):
        inner = name[len(folder) + 1 :]
        if is_case_input(name) and (deep or "/" not in inner) and ".files/" not in inner:
            result.append(name.removesuffix(".in"))
    return sorted(result, key=str.encode)


def read_section(files: PackageFiles, path: str, findings: Findings) -> YamlSection:
    """Read a YAML file that must be a map; a missing or invalid one is empty."""
    text = files.text(path, findings) if path in files else None
    node = parse_yaml(text, path, findings) if text else None
    if node is not None and not isinstance(node, YamlMap):
        findings.error(path, "must be a map of keys to values.", line=node.line)
        node = None
    return YamlSection(node, path, findings)


def read_raw(files: PackageFiles, base: str, findings: Findings, *, is_legacy: bool) -> RawCase:
    if f"{base}.ans" not in files:
        fix = f"Add {base}.ans; it may be empty where the validator needs none."
        findings.error(f"{base}.in", "has no answer file beside it.", fix)
    inner = f"{base}.files"
    settings = read_section(files, f"{base}.yaml", findings)
    for key in _CASE_KEYS:
        settings.node(key)
    settings.report_unknown_keys(is_error=not is_legacy)
    return RawCase(
        name=base.removeprefix(f"{DATA}/"),
        input=f"{base}.in",
        answer=f"{base}.ans" if f"{base}.ans" in files else None,
        files=tuple(FileRef(name[len(inner) + 1 :], name) for name in files.names(inner)),
        settings=settings,
        args=settings.take_texts("args") or _draft_args(files, f"{base}.args", findings),
        description=settings.take_text("description") or _note(files, f"{base}.desc", findings),
        hint=settings.take_text("hint") or _note(files, f"{base}.hint", findings),
    )


def _note(files: PackageFiles, path: str, findings: Findings) -> str:
    return (files.text(path, findings) or "").strip() if path in files else ""


def _draft_args(files: PackageFiles, path: str, findings: Findings) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(_note(files, path, findings)))
    except ValueError as error:
        findings.error(path, f"is not a list of arguments: {error}.", "Close the quotes.")
        return ()


def group_file(files: PackageFiles, folder: str) -> str:
    """The name of a folder's settings file: the newer spelling if both exist."""
    return next(
        (f"{folder}/{name}" for name in GROUP_FILES if f"{folder}/{name}" in files), f"{folder}/{GROUP_FILES[0]}"
    )
