"""Expectations of jury submissions: from their folder, ``submissions.yaml`` or a comment in the source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from adjudge.domain.problem import ANY_VERDICT, Expectation, TimeBound
from adjudge.domain.verdict import Verdict
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.safe_yaml import YamlList, YamlScalar, YamlSection, parse_number

ICPC_VERDICTS: dict[str, frozenset[Verdict]] = {
    "AC": frozenset({Verdict.AC, Verdict.PA}),
    "WA": frozenset({Verdict.WA, Verdict.OLE}),
    "TLE": frozenset({Verdict.TLE}),
    "RTE": frozenset({Verdict.RE, Verdict.MLE}),
}
"""The format has four verdicts; our others are mapped to the nearest of them."""
_DOMJUDGE = {
    "CORRECT": "AC",
    "ACCEPTED": "AC",
    "WRONG_ANSWER": "WA",
    "NO_OUTPUT": "WA",
    "TIMELIMIT": "TLE",
    "TIME_LIMIT_EXCEEDED": "TLE",
    "RUN_ERROR": "RTE",
    "RUN_TIME_ERROR": "RTE",
    "MEMORY_LIMIT": "RTE",
    "OUTPUT_LIMIT": "WA",
}
_COMMENT = re.compile(rb"@EXPECTED_RESULTS@:([^\r\n]{0,400})")
_SCORE_COMMENT = re.compile(rb"@EXPECTED_SCORE@:\s*([0-9.]{1,30})")
KEYS = ("permitted", "required", "score", "message", "use_for_time_limit")


def verdicts(names: Iterable[str]) -> frozenset[Verdict]:
    """Translate the format's verdicts into ours."""
    return frozenset[Verdict]().union(*(ICPC_VERDICTS[name] for name in names))


def _expect(permitted: str = "AC WA TLE RTE", required: str = "AC WA TLE RTE") -> Expectation:
    return Expectation(permitted=verdicts(permitted.split()), required=verdicts(required.split()))


DEFAULTS: dict[str, Expectation] = {
    "accepted": _expect("AC"),
    "rejected": _expect(required="RTE TLE WA"),
    "wrong_answer": _expect("AC WA", "WA"),
    "time_limit_exceeded": _expect("AC TLE", "TLE"),
    "run_time_error": _expect("AC RTE", "RTE"),
    "brute_force": _expect("AC RTE TLE", "RTE TLE"),
}
"""What 2025-09 expects of a folder."""
LEGACY_DEFAULTS: dict[str, Expectation] = {
    "accepted": _expect("AC"),
    "partially_accepted": Expectation(result=frozenset({Verdict.PA})),
    "wrong_answer": _expect("AC WA", "WA"),
    "time_limit_exceeded": _expect("AC WA TLE", "TLE"),
    "run_time_error": _expect(required="RTE"),
    "memory_limit_exceeded": _expect(required="RTE"),
    "output_limit": _expect(required="WA"),
    "no_output": _expect(required="WA"),
    "compiler_error": Expectation(
        permitted=frozenset(Verdict), required=frozenset(Verdict), result=frozenset({Verdict.CE})
    ),
}
"""What legacy packages, and DOMjudge with its additional folders, expect of a folder."""


def from_section(section: YamlSection, cases: str = "", base: Expectation | None = None) -> Expectation:
    """Read the keys of an expectation, with ``base`` as defaults."""
    result = base or Expectation()
    if "permitted" in section:
        result = replace(result, permitted=_set(section, "permitted"))
    if "required" in section:
        result = replace(result, required=_set(section, "required"))
    if "score" in section:
        result = replace(result, score=_score(section))
    return replace(
        result, cases=cases, message=section.take_text("message", result.message), time_bound=_bound(section)
    )


def _set(section: YamlSection, key: str) -> frozenset[Verdict]:
    names = section.take_texts(key, split=True)
    unknown = [name for name in names if name not in ICPC_VERDICTS]
    if unknown or not names:
        section.error(key, f"must be some of {', '.join(ICPC_VERDICTS)}.")
        return ANY_VERDICT
    return verdicts(names)


def _score(section: YamlSection) -> tuple[float, float] | None:
    node = section.node("score")
    items = node.items if isinstance(node, YamlList) else [node]
    bounds = [parse_number(item.text) if isinstance(item, YamlScalar) else None for item in items]
    low, high = (bounds[0], bounds[-1]) if bounds else (None, None)
    if len(bounds) > 2 or low is None or high is None or low > high:
        section.error("score", "must be a number, or two of them, the lower one first.")
        return None
    return low, high


def _bound(section: YamlSection) -> TimeBound:
    value = section.take_text("use_for_time_limit").lower()
    if value in ("", "true", "yes"):
        return TimeBound.AUTO
    if value in ("false", "no"):
        return TimeBound.NEITHER
    return TimeBound(section.take_choice("use_for_time_limit", ("lower", "upper"), "lower"))


def from_comments(files: PackageFiles, paths: Iterable[str], findings: Findings) -> tuple[Expectation, ...]:
    """Read DOMjudge's comments in the sources: the allowed final verdicts."""
    for path in paths:
        head = files.head(path, 256 * 1024)
        result = Expectation(permitted=frozenset(Verdict), required=frozenset(Verdict))
        if comment := _COMMENT.search(head):
            line = head.count(b"\n", 0, comment.start()) + 1
            result = replace(result, result=_results(comment[1].decode(errors="replace"), path, line, findings))
        if (comment := _SCORE_COMMENT.search(head)) and (value := parse_number(comment[1].decode())) is not None:
            result = replace(result, score=(value, value))
        if result.result or result.score:
            return (result,)
    return ()


def _results(text: str, path: str, line: int, findings: Findings) -> frozenset[Verdict]:
    result: set[Verdict] = set()
    for word in text.replace("*/", "").replace("-->", "").split(","):
        name = word.strip().upper().replace("-", "_")
        if name in ("COMPILER_ERROR", "COMPILE_ERROR"):
            result.add(Verdict.CE)
        elif name in _DOMJUDGE:
            result |= ICPC_VERDICTS[_DOMJUDGE[name]]
        elif name and name != "CHECK_MANUALLY":
            findings.warning(path, f"@EXPECTED_RESULTS@: {word.strip()[:40]!r} is not a verdict.", line=line)
    return frozenset(result)


def to_icpc_expectation(item: Expectation) -> Expectation:
    """The same expectation in the format's four verdicts; a final verdict becomes a required verdict of some test."""
    return replace(
        item,
        permitted=_widened(item.permitted),
        required=_widened(item.result or item.required),
        result=frozenset(),
        time_bound=TimeBound.AUTO if item.time_bound is TimeBound.BOTH else item.time_bound,
    )


def _widened(verdicts: frozenset[Verdict]) -> frozenset[Verdict]:
    return frozenset[Verdict]().union(*(members for members in ICPC_VERDICTS.values() if members & verdicts))
