"""The benchmark harness: fair order, honest rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.harness import Bench, Goal, interleave, interleave_async, sized


def test_contenders_alternate_and_medians_are_taken() -> None:
    order: list[str] = []
    figures = {"ours": iter([1.0, 100.0, 3.0]), "raw": iter([10.0, 20.0, 30.0])}

    def contender(name: str) -> Callable[[], float]:
        def run() -> float:
            order.append(name)
            return next(figures[name])

        return run

    assert interleave({name: contender(name) for name in figures}, rounds=3) == {"ours": 3.0, "raw": 20.0}
    assert order == ["ours", "raw", "raw", "ours", "ours", "raw"]


def test_coroutines_are_interleaved_too() -> None:
    async def five() -> float:
        return 5.0

    assert interleave_async({"ours": five}, rounds=2) == {"ours": 5.0}


def test_rows_say_what_they_are_held_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JSON", str(tmp_path / "rows.json"))
    bench = Bench("store")
    bench.compare("enqueue", {"ours": 400.0, "raw": 1000.0}, "ours", "raw", unit="jobs/s", goal=Goal(at_least=0.5))
    bench.add("growth", 1.2, "x", goal=Goal(limit=1.5))
    bench.absent("peer", "it is not installed")
    bench.finish()
    document = json.loads((tmp_path / "rows.json").read_text())
    assert document["bench"] == "store"
    first, second, third = document["rows"]
    assert first == {
        "name": "enqueue",
        "value": 400.0,
        "unit": "jobs/s",
        "against": "raw: 1,000 jobs/s",
        "ratio": 0.4,
        "goal": ">= 0.5",
        "met": False,
    }
    assert (second["goal"], second["met"]) == ("<= 1.5", True)
    assert (third["value"], third["against"]) == (None, "not measured: it is not installed")
    printed = capsys.readouterr().out
    assert "NO" in printed
    assert "not measured: it is not installed" in printed


@pytest.mark.parametrize(("quick", "expected"), [("1", 3), ("", 9), ("0", 9)])
def test_quick_runs_are_smaller(monkeypatch: pytest.MonkeyPatch, quick: str, expected: int) -> None:
    monkeypatch.setenv("QUICK", quick)
    assert sized(full=9, quick=3, smoke=1) == expected
