"""Problem metadata: slugs, tags, titles, search words."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem_metadata import (
    parse_difficulty,
    parse_slug,
    parse_tags,
    parse_title,
    search_words,
    tags_from_keywords,
)


@pytest.mark.parametrize("slug", ["a", "two-sum", "0x_1", "a" * 64])
def test_slugs(slug: str) -> None:
    assert parse_slug(slug) == slug


@pytest.mark.parametrize(
    "slug", ["", "A", "-a", "a b", "a/b", "a:b", "a" * 65, "ä", "a\n", "01890000-0000-7000-8000-000000000000"]
)
def test_invalid_slug_is_rejected(slug: str) -> None:
    with pytest.raises(InvalidInput, match="slug"):
        parse_slug(slug)


def test_tags_are_normalized() -> None:
    assert parse_tags(["  Dynamic   Programming ", "DP", "dp", "C++", "\uff27raphs"]) == (
        "dynamic programming",
        "dp",
        "c++",
        "graphs",
    )
    for wrong in ("", " ", "a,b", "<b>", "x" * 41, "\0"):
        with pytest.raises(InvalidInput, match="tags"):
            parse_tags([wrong])
    with pytest.raises(InvalidInput, match="at most"):
        parse_tags(str(number) for number in range(33))
    assert tags_from_keywords(["Graphs", "<b>", "graphs", ""]) == ("graphs",)


def test_titles_and_difficulties() -> None:
    assert parse_title("  Two \n words ") == "Two words"
    for wrong in ("", "  ", "x" * 201, "bell\a"):
        with pytest.raises(InvalidInput, match="title"):
            parse_title(wrong)
    assert parse_difficulty(None) is None
    for figure in (-1.0, 10_001.0, float("nan")):
        with pytest.raises(InvalidInput, match="difficulty"):
            parse_difficulty(figure)


def test_search_words_are_folded_and_unique() -> None:
    assert search_words("Two-Sum", "two_sum STRASSE Straße", "naïve \ufb01n") == (
        "two",
        "sum",
        "strasse",
        "naïve",
        "fin",
    )
