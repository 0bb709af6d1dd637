"""A short run of the fuzzer over every reader, and random texts for the parsers beneath them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.domain.errors import InvalidInput
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings
from adjudge.packages.globs import matches
from adjudge.packages.load import read_package
from adjudge.packages.safe_regex import compile_safe_regex
from adjudge.packages.safe_xml import parse_xml
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode, YamlScalar, parse_number, parse_yaml
from fuzz.package_seeds import SEEDS
from fuzz.packages import step
from tests.unit.packages.conftest import Read

BRIEF = settings(deadline=None, max_examples=150)


@pytest.mark.parametrize("contents", SEEDS, ids=range(len(SEEDS)))
def test_seeds_are_valid_packages(read: Read, contents: dict[str, bytes]) -> None:
    _, findings = read(contents)
    assert not findings.has_errors, findings.items


@pytest.mark.parametrize("block", range(7))
def test_mutated_packages_are_read_or_rejected(tmp_path: Path, block: int) -> None:
    for seed in range(block * 40, (block + 1) * 40):
        step(seed, tmp_path)


@BRIEF
@given(text=st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%,\n \t01\r\0é"), max_size=60))
def test_any_yaml_is_parsed_or_reported(text: str) -> None:
    findings = Findings()
    node = parse_yaml(text, "x", findings)
    assert node is None or not findings.items


NODES = st.recursive(
    st.text("ab:#'\"-{}[], \nyes0", max_size=8).map(lambda text: YamlScalar(text, 0, is_quoted=True)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: YamlList(items, 0)),
        st.dictionaries(st.text("ab- :", max_size=4), inner, max_size=3).map(lambda items: YamlMap(items, 0)),
    ),
    max_leaves=8,
)


def _flow(node: YamlNode) -> str:
    if isinstance(node, YamlScalar):
        return '"' + node.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(node, YamlList):
        return "[" + ", ".join(_flow(item) for item in node.items) + "]"
    return "{" + ", ".join(f"{_flow(YamlScalar(key, 0))}: {_flow(value)}" for key, value in node.items.items()) + "}"


def _bare(node: YamlNode | None) -> object:
    if isinstance(node, YamlScalar):
        return node.text
    if isinstance(node, YamlList):
        return [_bare(item) for item in node.items]
    return {key: _bare(value) for key, value in node.items.items()} if node is not None else None


@BRIEF
@given(node=NODES)
def test_yaml_scalars_keep_their_text(node: YamlNode) -> None:
    assert _bare(parse_yaml(_flow(node), "x", Findings())) == _bare(node)


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "a: &a [*a]", "a: *b", "- &a [1]\n" + "- [*a, *a]\n" * 3, "a: 1\na: 2", "? [1]\n: 2", "--- 1\n--- 2"],
)
def test_deep_circular_and_duplicate_yaml(text: str) -> None:
    findings = Findings()
    node = parse_yaml(text, "x", findings)
    assert (node is None) == findings.has_errors


def test_yaml_alias_bomb_is_rejected() -> None:
    text = "a0: &a0 [x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    findings = Findings()
    assert parse_yaml(text, "x", findings) is None
    assert "more than" in findings.items[0].message


@BRIEF
@given(data=st.binary(max_size=80))
def test_any_xml_is_parsed_or_reported(data: bytes) -> None:
    findings = Findings()
    assert (parse_xml(data, "x", findings) is None) == bool(findings.items)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" 1.5 ", 1.5),
        ("-2e3", -2000.0),
        ("1_000", None),
        ("inf", None),
        ("nan", None),
        ("1e999", None),
        ("", None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("", "secret/1", True),
        ("secret", "secret/a/1", True),
        ("secret/*", "secret/a/1", True),
        ("secret/*-easy", "secret/01-easy", True),
        ("secret/*-easy", "secret/a/01-easy", False),
        ("*", "secret/a", True),
        ("*.py", "accepted/a.py", False),
        ("{sample,secret/{a,b}}", "secret/b/1", True),
        ("{sample,secret/{a,b}}", "secret/c/1", False),
        ("a.c", "abc", False),
    ],
)
def test_globs(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["**", "a{b", "*" + "a*" * 9, "x" * 600])
def test_invalid_globs_are_rejected(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        matches(pattern, "a")


@BRIEF
@given(text=st.text("ab.*+?()[]{}|\\^$d12", max_size=12))
def test_any_pattern_is_safe_or_rejected(text: str) -> None:
    names = ["a" * 30 + "b", "b1"]
    try:
        pattern = compile_safe_regex(text, names)
    except InvalidInput:
        return
    for name in names:
        pattern.match(name)


def test_unknown_format_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InvalidInput, match=r"problem\.yaml"):
        read_package(PackageFiles({"readme.txt": tmp_path / "x"}, tmp_path), "x", Findings())
