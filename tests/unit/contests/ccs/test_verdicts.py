"""Verdicts as judgement types of the Contest API, and ids."""

from __future__ import annotations

import re

import pytest

from adjudge.contests.ccs.ids import award_id, judgement_of_run, parse_number, run_id
from adjudge.contests.ccs.verdicts import VERDICTS, judgement_type, judgement_type_objects, simplified_type
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict

ID = re.compile(r"(?=.{1,36}$)[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_-])?")


@pytest.mark.parametrize(
    ("verdict", "kind", "public"),
    [
        (Verdict.AC, "AC", "AC"),
        (Verdict.PA, "WA", "RE"),
        (Verdict.WA, "WA", "RE"),
        (Verdict.OLE, "OLE", "RE"),
        (Verdict.TLE, "TLE", "RE"),
        (Verdict.MLE, "MLE", "RE"),
        (Verdict.RE, "RTE", "RE"),
        (Verdict.CE, "CE", "CE"),
        (Verdict.SE, "JE", None),
    ],
)
def test_verdict_in_pass_fail_contests(verdict: Verdict, kind: str, public: str | None) -> None:
    assert judgement_type(verdict, None) == kind
    assert simplified_type(kind, compile_error_penalty=False) == public
    assert VERDICTS[kind] is (Verdict.WA if verdict is Verdict.PA else verdict)


def test_result_with_points_solves_in_score_contests() -> None:
    """Clients ignore the score of a type that does not solve."""
    assert judgement_type(Verdict.PA, 30_000_000) == "AC"
    assert judgement_type(Verdict.TLE, 30_000_000) == "AC"
    assert judgement_type(Verdict.TLE, 0) == "TLE"


def test_compile_error_with_penalty_is_like_other_rejections() -> None:
    assert simplified_type("CE", compile_error_penalty=True) == "RE"
    types = {item["id"]: item for item in judgement_type_objects(is_pass_fail=True, compile_error_penalty=True)}
    assert types["CE"]["penalty"]


def test_types_simplify_to_types_that_simplify_to_themselves() -> None:
    types = {item["id"]: item for item in judgement_type_objects(is_pass_fail=True, compile_error_penalty=False)}
    for item in types.values():
        simplified = item.get("simplified_judgement_type_id")
        if simplified is not None:
            assert types[simplified]["simplified_judgement_type_id"] == simplified
            assert types[simplified]["penalty"] == item["penalty"], "the scoreboard of the public is the same"
            assert types[simplified]["solved"] == item["solved"]
    assert {kind for kind, item in types.items() if not item["penalty"]} == {"AC", "CE", "JE"}
    assert {item["id"] for item in types.values() if item["solved"]} == {"AC"}


def test_score_contests_have_no_penalties() -> None:
    objects = judgement_type_objects(is_pass_fail=False, compile_error_penalty=False)
    assert not any("penalty" in item for item in objects)


def test_run_names_its_judgement() -> None:
    job_id = new_id()
    ids = {run_id(job_id, ordinal) for ordinal in (1, 2, 1_000, 65_535)}
    assert len(ids) == 4
    for text in ids:
        assert ID.fullmatch(text)
        assert judgement_of_run(text) == job_id
    assert judgement_of_run("1") is None
    assert judgement_of_run("x" * 36) is None


@pytest.mark.parametrize("code", ["A", "asia", "a-group-with-a-very-long-code-indeed", "x." * 17 + "x"])
def test_award_ids_are_ids(code: str) -> None:
    for prefix in ("first-to-solve-", "group-winner-", "organization-winner-"):
        assert ID.fullmatch(award_id(prefix, code)), award_id(prefix, code)
    assert award_id("first-to-solve-", "A") == "first-to-solve-A"


def test_long_award_ids_differ() -> None:
    long = "a-group-with-a-very-long-code-inde"
    assert award_id("organization-winner-", long + "e") != award_id("organization-winner-", long + "f")


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("07", None), ("-1", None), ("", None), ("٣", None), ("9" * 30, None)]
)
def test_numbers_are_ids_only_as_they_are_written(text: str, number: int | None) -> None:
    assert parse_number(text) == number
