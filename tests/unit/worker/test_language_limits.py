"""Limits of languages: families, and names that nothing has."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Languages
from adjudge.worker.slots import Slots, language_needs, parse_limits, refuse_unknown

LANGUAGES = Languages.load()
KNOWN = {"language": {"cpp", "cpp17", "java"}, "kind": {"judge"}, "node": {"sandbox"}}


def test_family_limit_is_shared_by_its_languages() -> None:
    slots = Slots(4, parse_limits("language:cpp=2, language:cpp17=1"))
    slots.acquire(language_needs(LANGUAGES, {"language": "cpp17"}))
    assert not slots.fits(language_needs(LANGUAGES, {"language": "cpp17"}))
    assert slots.fits(language_needs(LANGUAGES, {"language": "cpp20"}))
    slots.acquire(language_needs(LANGUAGES, {"language": "cpp20"}))
    assert not slots.fits(language_needs(LANGUAGES, {"language": "cpp23"}))
    assert slots.fits(language_needs(LANGUAGES, {"language": "c"}))


def test_language_that_is_its_own_family_counts_once() -> None:
    assert language_needs(LANGUAGES, {"language": "java"}) == ("language:java",)
    assert language_needs(LANGUAGES, {"language": "unheard-of"}) == ("language:unheard-of",)
    assert language_needs(LANGUAGES, {}) == ()


@pytest.mark.parametrize(
    ("text", "known"),
    [("language:jawa=1", "cpp, cpp17, java"), ("kind:jugde=1", "judge"), ("node:sandbux=1", "sandbox")],
)
def test_unknown_limit_is_rejected_with_the_known_ones(text: str, known: str) -> None:
    with pytest.raises(InvalidInput, match=rf"there is no '{text.partition('=')[0]}'; known are {known}\."):
        refuse_unknown(parse_limits(text), KNOWN)


def test_known_limits_are_accepted() -> None:
    refuse_unknown(parse_limits("language:cpp=2, language:java=1, kind:judge=3, node:sandbox=1"), KNOWN)
