"""Comparators agree with recorded results of their reference implementations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjudge.judge.comparators import Comparison, ComparisonStatus, build_comparator

VECTORS = json.loads((Path(__file__).parent / "comparator_vectors.json").read_text())
TESTLIB = {
    ComparisonStatus.ACCEPTED: "OK",
    ComparisonStatus.WRONG_ANSWER: "WA",
    ComparisonStatus.FORMAT_ERROR: "PE",
    ComparisonStatus.JURY_ERROR: "FAIL",
}
REFERENCES = {
    "kattis_default": ("icpc", ""),
    "kattis_case_sensitive": ("icpc", "case_sensitive"),
    "kattis_space_change_sensitive": ("icpc", "space_change_sensitive"),
    "testlib_wcmp": ("wcmp", ""),
    "testlib_lcmp": ("lcmp", ""),
    "testlib_fcmp": ("fcmp", ""),
    "testlib_ncmp": ("ncmp", ""),
    "dmoj_standard": ("dmoj-standard", ""),
    "dmoj_identical": ("dmoj-identical", ""),
    "dmoj_rstripped": ("dmoj-rstripped", ""),
    "dmoj_sorted": ("dmoj-sorted", ""),
    "dmoj_easy": ("dmoj-easy", ""),
    "dmoj_linecount_of_10": ("dmoj-linecount", ""),
    "cms_whitediff_reimpl": ("white-diff", ""),
    "kattis float_tolerance 1e-6": ("icpc", "float_tolerance 1e-6"),
    "kattis float_absolute_tolerance 1e-6": ("icpc", "float_absolute_tolerance 1e-6"),
    "kattis float_relative_tolerance 1e-6": ("icpc", "float_relative_tolerance 1e-6"),
    "testlib_rcmp6": ("rcmp6", ""),
    "testlib_rcmp(abs 1.5e-6, single)": ("rcmp", ""),
    "dmoj_floats": ("dmoj-floats", ""),
    "dmoj_floatsabs": ("dmoj-floats", "error_mode=absolute"),
    "dmoj_floatsrel": ("dmoj-floats", "error_mode=relative"),
}
CASES = VECTORS["text"] + VECTORS["float"]


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("chunk_bytes", [1, 2, 262_144])
def test_agrees_with_the_reference(reference: str, chunk_bytes: int, reader: type) -> None:
    kind, flags = REFERENCES[reference]
    compared, otherwise = 0, {}
    for case in (case for case in CASES if reference in case["verdict"]):
        answer, output = case["answer"].encode("latin-1"), case["output"].encode("latin-1")
        said = build_comparator(kind, flags.split()).compare(reader(answer), reader(output), chunk_bytes)
        compared += 1
        if not _agree(reference, case["verdict"][reference], said):
            otherwise[case["case"]] = (said, case["verdict"][reference])
    assert otherwise == {}
    assert compared == 27, "the reference was asked of as many"


def _agree(reference: str, verdict: str, said: Comparison) -> bool:
    if reference.startswith("testlib"):
        return TESTLIB[said.status] == verdict
    if ("AC" if said.accepted else "WA") != verdict.partition("(")[0]:
        return False
    if reference == "dmoj_linecount_of_10" and "(" in verdict:
        points = 10 if said.accepted else 10 * (said.score or 0)
        return points == int(verdict.partition("(")[2].rstrip(")"))
    return True
