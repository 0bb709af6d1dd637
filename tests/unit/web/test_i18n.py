"""Translations are complete, and templates contain no untranslated text."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.store.jobs.commands import LEASE_EXPIRED, NEVER_STARTED, NO_HEARTBEAT
from adjudge.web import i18n
from adjudge.worker.runner import REASON_WORKER_DRAINED

TEMPLATES = Path(i18n.__file__).parent / "templates"
PYTHON = Path(i18n.__file__).parent
_KEY = re.compile(r"""\bt\(\s*["']([^"']+)["']""")
_COUNTED = re.compile(r"""\bt\(\s*["']([^"']+)["'][^)]*\bcount=""")
_MARKUP = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}|<[^>]*>|&\w+;", re.DOTALL)
_NAMES = {"Adjudge", "API", "adjudge", "chain", "apply", "JSON", "CSV", "ms", "MiB", "KiB", "s"}
"""Words that are the same in every language."""


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", sorted(i18n.available_languages()))
def test_every_language_has_the_same_keys_and_placeholders(language: str) -> None:
    english, other = i18n.available_languages()["en"].texts, i18n.available_languages()[language].texts
    assert set(other) == set(english)
    assert {key for key in english if _fields(english[key]) != _fields(other[key])} == set()
    assert not [key for key, text in other.items() if not text.strip()]


def _used_keys() -> set[str]:
    used: set[str] = set()
    for path in [*TEMPLATES.rglob("*.html"), *PYTHON.rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        counted = set(_COUNTED.findall(text))
        used |= {key for key in _KEY.findall(text) if key not in counted}
        used |= {f"{key}.{form}" for key in counted for form in ("one", "other")}
    return used


def test_every_used_key_exists() -> None:
    assert {key for key in _used_keys() if key not in i18n.available_languages()["en"].texts} == set()


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_templates_contain_no_untranslated_text(path: Path) -> None:
    rest = _MARKUP.sub(" ", path.read_text(encoding="utf-8"))
    assert {word for word in re.findall(r"[A-Za-z\u4e00-\u9fff]{2,}", rest) if word not in _NAMES} == set()


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        ("zh", "en", "zh-Hans"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"),
        (None, "en;q=0.5, zh;q=0.9", "zh-Hans"),
        (None, "fr-FR, de", "en"),
        (None, "", "en"),
        ("xx", "zh;q=0, en;q=often", "en"),
    ],
)
def test_language_by_cookie_and_header(cookie: str | None, accepted: str, language: str) -> None:
    assert i18n.choose_language(cookie, accepted).language == language


def test_count_selects_the_plural_form() -> None:
    spoken = i18n.Translations("en", "English", {"x.one": "{count} test", "x.other": "{count} tests"})
    assert (spoken("x", count=1), spoken("x", count=0)) == ("1 test", "0 tests")


@pytest.mark.parametrize("reason", [LEASE_EXPIRED, NEVER_STARTED, NO_HEARTBEAT, REASON_WORKER_DRAINED])
def test_reasons_why_a_job_went_back_have_labels(reason: str) -> None:
    for texts in i18n.available_languages().values():
        assert texts.label("status_reason", reason) != reason


def test_verdict_names_are_those_of_the_domain() -> None:
    english = i18n.available_languages()["en"]
    assert {verdict: english.label("verdict", verdict) for verdict in Verdict} == {
        verdict: verdict.title for verdict in Verdict
    }
    assert english.label("verdict", "TLE") == "Time limit exceeded"
    assert english.label("verdict", "SE") == "System error"
