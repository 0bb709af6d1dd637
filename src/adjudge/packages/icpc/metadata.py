"""``problem.yaml`` in all versions of the ICPC format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from adjudge.domain.problem import Grading, PackageFormat, Problem, ProblemMode
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.icpc.credits import read_credits, read_sources
from adjudge.packages.icpc.limits import read_limits
from adjudge.packages.safe_yaml import YamlMap, YamlScalar, YamlSection, parse_yaml

FILE = "problem.yaml"
LICENSES = ("unknown", "public domain", "cc0", "cc by", "cc by-sa", "educational", "permission")
KINDS = ("pass-fail", "scoring", "multi-pass", "interactive", "submit-answer")
_EXCLUSIVE = (("pass-fail", "scoring"), ("submit-answer", "multi-pass"), ("submit-answer", "interactive"))
_CONSTANT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_EMBARGO = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")


class FormatFamily(StrEnum):
    """Which rules a package follows."""

    LEGACY = "legacy"
    LEGACY_ICPC = "legacy-icpc"
    DRAFT = "2023-07"
    NEW = "2025-09"

    @property
    def is_legacy(self) -> bool:
        return self in (FormatFamily.LEGACY, FormatFamily.LEGACY_ICPC)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The content of ``problem.yaml``: the problem without its files, and what decides how they are read."""

    family: FormatFamily
    problem: Problem
    has_custom_validator: bool = False
    """Legacy packages declare it; newer ones have the program or not."""
    validator_flags: tuple[str, ...] = ()


def read_metadata(files: PackageFiles, findings: Findings) -> Metadata:
    """Read ``problem.yaml``; a missing one is empty, as in packages made for DOMjudge."""
    text = files.text(FILE, findings) if FILE in files else ""
    node = parse_yaml(text, FILE, findings) if text else None
    if node is not None and not isinstance(node, YamlMap):
        findings.error(FILE, "must be a map of keys to values.", line=node.line)
        node = None
    section = YamlSection(node, FILE, findings)
    family = _family(section)
    metadata = _legacy(section, family) if family.is_legacy else _new(section, family)
    section.report_unknown_keys(is_error=family is FormatFamily.NEW)
    return metadata


def _family(section: YamlSection) -> FormatFamily:
    value = section.take_text("problem_format_version", "legacy")
    if value in ("legacy", "legacy-icpc"):
        return FormatFamily(value)
    if value.startswith("2023-07"):
        return FormatFamily.DRAFT
    if value.startswith("2025-09") or value == "draft":
        return FormatFamily.NEW
    section.error(
        "problem_format_version", f"{value[:40]!r} is unknown.", "Use legacy, legacy-icpc, 2023-07 or 2025-09."
    )
    return FormatFamily.NEW


def _legacy(section: YamlSection, family: FormatFamily) -> Metadata:
    grading = Grading(section.take_choice("type", ("pass-fail", "scoring"), "pass-fail"))
    if family is FormatFamily.LEGACY_ICPC and grading is Grading.SCORING:
        section.error("type", "legacy-icpc packages cannot be scoring.", "Use problem_format_version: legacy.")
    words = section.take_text("validation", "default").split() or ["default"]
    if words[0] not in ("default", "custom") or not set(words[1:]) <= {"interactive", "score", "multi-pass"}:
        section.error("validation", f"{' '.join(words)!r} is unknown.", "Use 'default' or 'custom [interactive]'.")
    title = section.take_text("name")
    rating = section.take_section("grading")
    objective = rating.take_choice("objective", ("max", "min"), "max")
    rating.take_flag("show_test_data_groups", default=False)
    rating.report_unknown_keys()
    section.take_text("rights_owner")
    problem = Problem(
        "",
        PackageFormat("icpc", family),
        titles={"en": title} if title else {},
        uuid=section.take_text("uuid"),
        grading=grading,
        mode=ProblemMode.INTERACTIVE if "interactive" in words else ProblemMode.BATCH,
        max_passes=_legacy_passes(section, words),
        is_minimised=objective == "min",
        limits=read_limits(section, is_legacy=True),
        credits=read_credits(section, is_legacy=True),
        sources=read_sources(section, is_legacy=True),
        license=_license(section),
        rights_owner=section.take_text("rights_owner"),
        keywords=section.take_texts("keywords", split=True),
    )
    return Metadata(family, problem, words[0] == "custom", section.take_texts("validator_flags", split=True))


def _legacy_passes(section: YamlSection, words: list[str]) -> int:
    limits = section.take_section("limits")
    return limits.take_integer("validation_passes", 2, least=2) if "multi-pass" in words else 1


def _new(section: YamlSection, family: FormatFamily) -> Metadata:
    kinds = _kinds(section)
    limits = section.take_section("limits")
    many = "multi-pass" in kinds
    if "validation_passes" in limits and not many:
        limits.error("validation_passes", "is only for multi-pass problems.", "Remove it, or add the type.")
    embargo = section.take_text("embargo_until")
    if embargo and not _EMBARGO.fullmatch(embargo):
        section.error("embargo_until", "must be YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ.")
    if family is FormatFamily.NEW and "uuid" not in section:
        section.warning("uuid", "is missing, and the format requires it.", "Add a fresh UUID.")
    if family is FormatFamily.DRAFT:
        section.take_text("source_url")
    problem = Problem(
        "",
        PackageFormat("icpc", family),
        titles=_titles(section),
        uuid=section.take_text("uuid"),
        version=section.take_text("version"),
        grading=Grading.SCORING if "scoring" in kinds else Grading.PASS_FAIL,
        mode=_mode(kinds),
        max_passes=limits.take_integer("validation_passes", 2, least=2) if many else 1,
        limits=read_limits(section, is_legacy=False),
        languages=_languages(section),
        allow_file_writing=section.take_flag("allow_file_writing", default=False),
        constants=_constants(section),
        credits=read_credits(section, is_legacy=False),
        sources=read_sources(section, is_legacy=False),
        license=_license(section),
        rights_owner=section.take_text("rights_owner"),
        embargo_until=embargo,
        keywords=section.take_texts("keywords", split=True),
    )
    return Metadata(family, problem)


def _kinds(section: YamlSection) -> set[str]:
    """Read ``type`` as a word, as words separated by spaces (as in the format's examples), or as a list."""
    kinds = set(section.take_texts("type", split=True))
    for kind in sorted(kinds - set(KINDS)):
        section.error("type", f"{kind[:40]!r} is not one of {', '.join(KINDS)}.")
    for one, other in _EXCLUSIVE:
        if {one, other} <= kinds:
            section.error("type", f"{one} and {other} are mutually exclusive.", "Keep one of them.")
    return kinds


def _mode(kinds: set[str]) -> ProblemMode:
    if "submit-answer" in kinds:
        return ProblemMode.SUBMIT_ANSWER
    return ProblemMode.INTERACTIVE if "interactive" in kinds else ProblemMode.BATCH


def _titles(section: YamlSection) -> dict[str, str]:
    node = section.node("name")
    if node is None:
        section.warning("name", "is missing.", "Give the problem a name.")
        return {}
    if isinstance(node, YamlMap):
        inner = section.take_section("name")
        return {language: inner.take_text(language) for language in inner.keys()}  # noqa: SIM118  # not a dict
    return {"en": section.take_text("name")}


def _license(section: YamlSection) -> str:
    value = section.take_choice("license", LICENSES, "unknown")
    if value == "public domain" and "rights_owner" in section:
        section.error("rights_owner", "a problem in the public domain has no owner.", "Remove it.")
    return value


def _languages(section: YamlSection) -> tuple[str, ...]:
    languages = section.take_texts("languages", split=True)
    return () if languages == ("all",) else languages


def _constants(section: YamlSection) -> dict[str, str]:
    """Flatten constants: ``name`` is the value, ``name.variant`` that of a variant."""
    inner = section.take_section("constants")
    result: dict[str, str] = {}
    for name in inner.keys():  # noqa: SIM118  # not a dict
        if not _CONSTANT.fullmatch(name):
            inner.error(name, "is not a valid name of a constant.", "Use letters, digits and _.")
        node = inner.node(name)
        if isinstance(node, YamlScalar):
            result[name] = node.text
            continue
        variants = inner.take_section(name)
        for variant in variants.keys():  # noqa: SIM118  # not a dict
            result[name if variant == "value" else f"{name}.{variant}"] = variants.take_text(variant)
    return result
