"""The operator's language file: changes, additions, error messages."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import Limits
from adjudge.domain.problem import PackageFormat, Problem, ProblemLimits
from adjudge.judge.language_overlay import KEYS, LanguageOrigin, LanguageSource
from adjudge.judge.languages import Language, Languages, version_number
from adjudge.judge.pipeline import submission_limits
from adjudge.sandbox import Sandbox

ZIG = """
[zig]
name = "Zig"
code = "zig"
extensions = ["zig"]
source = "main.zig"
tools = ["zig"]
run = ["{dir}/main"]
"""


def loaded(tmp_path: Path, text: str) -> Languages:
    path = tmp_path / "languages.toml"
    path.write_text(text)
    return Languages.load(overlay=path)


def test_overlay_changes_time_factor(tmp_path: Path) -> None:
    languages = loaded(tmp_path, "[python3]\ntime_factor = 3\n")
    problem = Problem("made", PackageFormat("plain"), limits=ProblemLimits(run=Limits(cpu_ms=1_000)))
    assert submission_limits(problem, languages.get("python3")).cpu_ms == 3_000
    assert submission_limits(problem, languages.get("cpp20")).cpu_ms == 1_000
    assert languages.get("python3").run == Languages.load().get("python3").run
    assert languages.digest != Languages.load().digest


def test_overlay_adds_language(tmp_path: Path) -> None:
    languages = loaded(tmp_path, ZIG)
    assert languages.get("zig").extensions == ("zig",)
    assert languages.for_file("main.zig") == languages.get("zig")
    assert len(list(languages)) == len(list(Languages.load())) + 1


def test_new_language_requires_all_keys(tmp_path: Path) -> None:
    for line in ZIG.strip().splitlines()[1:]:
        with pytest.raises(InvalidInput, match=rf"zig\.{line.split()[0]} is missing"):
            loaded(tmp_path, ZIG.replace(line, ""))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[python3]\ntime_faktor = 2", r"python3\.time_faktor is not a known key"),
        ("[python3]\ntime_factor = 0", r"python3\.time_factor must be a number from 0\.1 to 100"),
        ("[python3]\ntime_factor = nan", r"python3\.time_factor must be a number"),
        ("[python3]\ntime_factor = true", r"python3\.time_factor must be a number"),
        ('[python3]\ntime_factor = "2"', r"python3\.time_factor must be a number"),
        ("[python3]\nprocesses = 1.5", r"python3\.processes must be an integer"),
        ('[python3]\nrun = "python3"', r"python3\.run must be a list of strings"),
        ("[python3]\nrun = []", r"python3\.run is missing"),
        ("[python3]\nname = 3", r"python3\.name must be a string"),
        ("[python3]\nrun_env = { A = 1 }", r"python3\.run_env must be a table of strings"),
        ("[python3]\ndefault = 1", r"python3\.default must be true or false"),
        ("[python3]\ndisabled = 0", r"python3\.disabled must be true or false"),
        ("[python3]\npin = 3.11", r"python3\.pin must be a string"),
        ("python3 = 2", "python3 must be a table"),
        ('["Python 3"]\nname = "x"', "an id must match"),
        ("[python3", "is not valid TOML"),
    ],
)
def test_invalid_key_is_named_in_error(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        loaded(tmp_path, text)
    assert "judge.languages_file" in str(refused.value)
    assert "languages.toml" in str(refused.value)


def test_missing_overlay_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.toml cannot be read"):
        Languages.load(overlay=tmp_path / "nowhere.toml")


def test_overlay_accepts_every_language_key() -> None:
    names = {field.name for field in fields(Language)} - {"id", "is_default"}
    assert names | {"default"} == KEYS


def test_disabled_language_is_rejected_for_new_programs_only(tmp_path: Path) -> None:
    languages = loaded(tmp_path, "[python3]\ndisabled = true\n")
    assert "python3" not in {language.id for language in languages.offered()}
    with pytest.raises(InvalidInput, match=r"items\[0\]\.language: Python 3 is disabled"):
        languages.get_offered("py", "items[0].language")
    assert languages.get("python3").name == "Python 3", "checkers and rejudged submissions still need it"
    assert languages.get_offered("cpp20").id == "cpp20"


def test_source_of_each_entry(tmp_path: Path) -> None:
    languages = loaded(tmp_path, ZIG + "[python3]\ntime_factor = 3\npin = '3.11.2'\n")
    assert languages.source(languages.get("zig")).origin is LanguageOrigin.ADDED
    assert languages.source(languages.get("python3")) == LanguageSource(LanguageOrigin.CHANGED, ("pin", "time_factor"))
    assert languages.source(languages.get("c")) == LanguageSource(LanguageOrigin.BUILT_IN)


@pytest.mark.parametrize("form", ["number", "line"])
async def test_pinned_version_is_usable(tmp_path: Path, form: str) -> None:
    plain = Languages.load()
    async with Sandbox(slots=1, unsafe=True) as box:
        version = await plain.version(plain.get("bash"), box)
        pin = version if form == "line" else version_number(version)
        languages = loaded(tmp_path, f"[bash]\npin = '{pin}'\n")
        assert await languages.version(languages.get("bash"), box) == version
    assert languages.toolchain(languages.get("bash")).usable


async def test_other_version_than_the_pinned_one_is_not_used(tmp_path: Path) -> None:
    languages = loaded(tmp_path, "[bash]\npin = '1.0'\n")
    async with Sandbox(slots=1, unsafe=True) as box:
        version = version_number(await languages.version(languages.get("bash"), box))
    toolchain = languages.toolchain(languages.get("bash"))
    assert not toolchain.usable
    assert f"version {version} is installed, but 1.0 is pinned" in toolchain.missing
