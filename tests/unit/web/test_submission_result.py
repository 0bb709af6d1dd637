"""Preparation of result documents for display."""

from __future__ import annotations

from typing import Any

from adjudge.web import i18n
from adjudge.web.submission_result import build_result_view

EN, ZH = i18n.available_languages()["en"], i18n.available_languages()["zh"]


def _case(name: str, verdict: str | None, time_ms: int = 5) -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "time_ms": time_ms, "mem_kb": 2_048}


def _document(**fields: Any) -> dict[str, Any]:
    limits = {"cpu_ms": 1_000, "memory_bytes": 64 * 1024 * 1024}
    return {"verdict": "WA", "max_score": 1, "groups": [], "provenance": {"limits": limits}, **fields}


def test_tests_not_run_are_counted() -> None:
    shown = build_result_view(EN, _document(), [_case("1", "AC"), _case("2", "WA"), _case("3", None)], "C++")
    assert [case["name"] for case in shown.cases] == ["1", "2"]
    assert shown.not_run == 1


def test_time_and_memory_plots_show_limits() -> None:
    shown = build_result_view(EN, _document(), [_case("1", "AC"), _case("2", "WA")], "C++")
    assert [title for title, _ in shown.pictures] == ["Time per test", "Memory per test"]
    assert all('class="limit"' in drawing for _, drawing in shown.pictures)
    assert "2: WA, 2 MiB" in shown.pictures[1][1]
    assert build_result_view(EN, _document(), [_case("1", "WA")], "C++").pictures == []


def test_points_are_shown_by_innermost_group_if_scored() -> None:
    groups = [
        {"path": path, "verdict": "AC", "score": score, "max_score": most}
        for path, score, most in (("", 20, 100), ("sample", 0, 0), ("secret", 20, 100), ("secret/1", 20, 20))
    ]
    groups.append({"path": "secret/2", "verdict": None, "score": 0, "max_score": 80})
    scored = build_result_view(EN, _document(max_score=100, groups=groups), [], "C++")
    assert [group["path"] for group in scored.groups] == ["secret/1", "secret/2"]
    assert scored.is_scored
    assert build_result_view(EN, _document(groups=groups), [], "C++").groups == []


def test_failure_summary_is_translated() -> None:
    failed = _document(first_failure="sample/1", message="Wrong answer on test sample/1")
    assert build_result_view(ZH, failed, [], "C++").message == ZH(
        "submission.failed_on", verdict=ZH("verdict.WA"), test="sample/1"
    )
    refused = _document(verdict="CE", message="took longer than 10 s", compile={"log": "main.cpp:1: error"})
    assert "C++" in build_result_view(ZH, refused, [], "C++").message
    assert build_result_view(ZH, refused | {"compile": {"log": ""}}, [], "C++").message == "took longer than 10 s"
    assert build_result_view(ZH, {}, [], "C++").message == ""
