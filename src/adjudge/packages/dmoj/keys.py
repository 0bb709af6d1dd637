"""The keys of ``init.yml``: what each map may contain, so that a misspelled or unsupported key is reported."""

from __future__ import annotations

from adjudge.packages.dmoj.scope import FILE
from adjudge.packages.findings import Findings
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode

_ANYWHERE = frozenset(
    {
        "in",
        "out",
        "points",
        "checker",
        "generator",
        "generator_args",
        "generator_in",
        "binary_data",
        "symlinks",
        "output_prefix_length",
        "output_limit_length",
        "wall_time_factor",
        "unbuffered",
        "short_circuit",
    }
)
"""Looked up in the case, then in its batch, then at the top level."""
_TOP = _ANYWHERE | {
    "archive",
    "test_cases",
    "pretest_test_cases",
    "custom_judge",
    "signature_grader",
    "interactive",
    "hints",
}
_BATCH = _ANYWHERE | {"batched", "dependencies"}
_PROGRAM = frozenset(
    {"files", "lang", "flags", "type", "memory_limit", "compiler_time_limit", "args_format_string", "feedback"}
)
_SECTIONS: dict[str, frozenset[str]] = {
    "checker": frozenset({"name", "args"}),
    "generator": frozenset(
        {"source", "language", "flags", "args", "time_limit", "memory_limit", "compiler_time_limit"}
    ),
    "interactive": _PROGRAM | {"preprocessing_time", "unbuffered"},
    "signature_grader": frozenset({"entry", "header", "allow_main"}),
}
_CASE_NAMES = frozenset({"input_format", "output_format", "case_points"})
BRIDGED_ARGS = _PROGRAM | {"time_limit"}


def report_unknown(root: YamlMap, findings: Findings) -> None:
    """Report every key that is not read: DMOJ ignores it, too, but its author expects an effect."""
    _report(root, _TOP, "", findings)
    for key in ("test_cases", "pretest_test_cases"):
        node = root.items.get(key) or root.items.get(key.replace("_", "-"))
        if isinstance(node, YamlMap):
            _report(node, _CASE_NAMES, f"{key}.", findings)
        for item in node.items if isinstance(node, YamlList) else ():
            _report_case(item, findings)


def _report_case(node: YamlNode, findings: Findings) -> None:
    if not isinstance(node, YamlMap):
        return
    _report(node, _BATCH, "", findings)
    batch = node.items.get("batched")
    for item in batch.items if isinstance(batch, YamlList) else ():
        if isinstance(item, YamlMap):
            _report(item, _ANYWHERE, "", findings)


def _report(node: YamlMap, known: frozenset[str], prefix: str, findings: Findings) -> None:
    for key, value in node.items.items():
        name = key.replace("-", "_")
        if key.endswith("+"):
            continue  # Python, rejected elsewhere
        if name not in known:
            line = node.key_lines.get(key, node.line)
            findings.warning(FILE, f"{prefix}{key[:60]}: is not a key of this format.", "Correct or remove it.", line)
        elif isinstance(value, YamlMap) and name in _SECTIONS:
            _report(value, _SECTIONS[name], f"{name}.", findings)


def report_unknown_args(args: YamlMap | None, known: frozenset[str], findings: Findings) -> None:
    """Report unknown arguments of a checker."""
    if args is not None:
        _report(args, known, "checker.args.", findings)
