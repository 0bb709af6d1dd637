"""A testlib checker behind the ICPC interface: every way it can end has its counterpart, and points are passed on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from adjudge.domain.programs import ScoreUnit
from adjudge.packages.icpc.testlib_wrappers import WRAPPER, checker_wrapper

CHECKER = r"""
#include <cstdio>
#include <cstdlib>
int main(int, char **argv) {
    char text[100];
    int code = 0;
    FILE *output = fopen(argv[2], "r");
    if (fscanf(output, "%d %99[^\n]", &code, text) == 2) fprintf(stderr, "%s\n", text);
    exit(code);
}
"""


def built(folder: Path, unit: ScoreUnit | None) -> Path:
    (folder / "check.cpp").write_text(CHECKER)
    (folder / WRAPPER).write_text(checker_wrapper(unit))
    (folder / "given").write_text("")
    command = ["g++", "-o", str(folder / "check"), str(folder / "check.cpp"), str(folder / WRAPPER)]
    subprocess.run(command, check=True)
    return folder


def judged(folder: Path, said: str) -> tuple[int, dict[str, str]]:
    """The exit code, and what is in the feedback folder besides the message."""
    feedback = folder / "feedback"
    feedback.mkdir(exist_ok=True)
    for old in feedback.iterdir():
        old.unlink()
    (feedback / "judgemessage.txt").write_text("of the pass before: points 9\n")
    command = [str(folder / "check"), str(folder / "given"), str(folder / "given"), f"{feedback}/"]
    done = subprocess.run(command, input=said.encode(), check=False)
    files = {path.name: path.read_text().strip() for path in feedback.iterdir()}
    assert files.pop("judgemessage.txt").endswith(said.partition(" ")[2])
    return done.returncode, files


@pytest.mark.slow
def test_points_become_score_if_problem_is_scored(tmp_path: Path) -> None:
    folder = built(tmp_path, ScoreUnit.ABSOLUTE)
    for said, code, files in [
        ("0 ok", 42, {}),
        ("1 wrong answer", 43, {}),
        ("2 wrong output format", 43, {}),
        ("3 FAIL", 1, {}),
        ("7 points 1", 42, {"score.txt": "1"}),
        ("7 points 2.50 not the best", 42, {"score.txt": "2.50"}),
        ("7 points_info=x 3", 42, {"score.txt": "3"}),
        ("7 many points", 1, {}),
        ("16 partially correct (25) some", 42, {"score_multiplier.txt": "0.250000"}),
    ]:
        assert judged(folder, said) == (code, files), said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "files"),
    [
        (None, {}),
        (ScoreUnit.FRACTION, {"score_multiplier.txt": "0.5"}),
        (ScoreUnit.PERCENT, {"score_multiplier.txt": "0.005000"}),
    ],
)
def test_points_use_score_unit(tmp_path: Path, unit: ScoreUnit | None, files: dict[str, str]) -> None:
    folder = built(tmp_path, unit)
    assert judged(folder, "7 points 0.5") == (42, files)
    assert judged(folder, "1 wrong answer") == (43, {})
