"""Templates: what they give, what they refuse, and that they never change what is not theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.chains.templating import TemplateReference, is_templated, references, render
from adjudge.domain.errors import InvalidInput

SCOPE = {
    "parameters": {"slug": "sum", "limit": 3, "on": True, "nothing": None, "deep": {"a b": [1, {"x": "y"}]}},
    "artifacts": {"build-tests": {"files": ["1.in", "2.in"], "0": "zero"}},
    "run": {"id": "r1"},
    "item": {"n": 7},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ parameters.slug }}", "sum"),
        ("{{parameters.limit}}", 3),
        ("{{ parameters.on }}", True),
        ("{{ parameters.nothing }}", None),
        ("{{ artifacts.build-tests.files }}", ["1.in", "2.in"]),
        ("{{ artifacts.build-tests.files[1] }}", "2.in"),
        ("{{ artifacts.build-tests.0 }}", "zero"),
        ('{{ parameters.deep["a b"][1].x }}', "y"),
        ("{{ item }}", {"n": 7}),
        ("run {{ run.id }} of {{ parameters.slug }}!", "run r1 of sum!"),
        ("n={{ item.n }}, on={{ parameters.on }}, {{ parameters.nothing }}", "n=7, on=true, null"),
        (" {{ item.n }}", " 7"),
        ("{{ item.n }}{{ item.n }}", "77"),
        ('{{ "{{" }}', "{{"),
        ('{{ "say \\"no\\" }}" }}', 'say "no" }}'),
        ("{{ -1.5e2 }}", -150.0),
        ("{{ null }}", None),
        ('{{ parameters.missing ?? "else" }}', "else"),
        ("{{ parameters.missing ?? parameters.limit ?? 1 }}", 3),
        ("{{ parameters.nothing ?? 1 }}", None),
        ("} }} not one", "} }} not one"),
    ],
)
def test_text(text: str, value: object) -> None:
    found = render(text, SCOPE)
    assert found == value
    assert type(found) is type(value)


def test_documents_are_rendered_throughout_and_names_are_not() -> None:
    cfg = {"{{ run.id }}": ["{{ item.n }}", {"a": "{{ run.id }}"}], "b": 1.5, "c": None}
    assert render(cfg, SCOPE) == {"{{ run.id }}": [7, {"a": "r1"}], "b": 1.5, "c": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ nobody.x }}", "there is no 'nobody' here; the names are: artifacts, item, parameters, run"),
        ("{{ parameters.slag }}", "no 'slag' in parameters; the names are: deep, limit, nothing, on, slug"),
        ("{{ artifacts.build-tests.files[2] }}", "no 2 in artifacts.build-tests.files; it is a list of 2"),
        ("{{ parameters.slug.x }}", "no 'x' in parameters.slug; it is a text"),
        ("{{ parameters.nothing.x }}", "no 'x' in parameters.nothing; it is null"),
        ("{{ parameters[0] }}", "no 0 in parameters"),
        ("{{ parameters.slug", "it ends where '??' or '}}' must stand"),
        ("{{ }}", "'}}' where a name or a value must stand"),
        ("{{ a + b }}", "'+ b }}' where '??' or '}}' must stand"),
        ("{{ a() }}", "'() }}' where"),
        ("{{ a.__class__.b }", "must stand"),
        ("{{ a[-1] }}", "an index from 0"),
        ("{{ a['x'] }}", "must stand"),
        ("{{ a b }}", "'b' where '??'"),
        ('{{ "\\x" }}', "is not a JSON string"),
    ],
)
def test_refusals_name_the_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        render({"url": [text]}, SCOPE, "nodes.fetch.cfg")
    assert refused.value.message.startswith("nodes.fetch.cfg.url[0]: ")
    assert message in refused.value.message


def test_attributes_of_python_are_out_of_reach() -> None:
    with pytest.raises(InvalidInput, match="no '__class__' in parameters"):
        render("{{ parameters.__class__ }}", SCOPE)


def test_references_are_listed_with_their_places() -> None:
    cfg = {"a": "{{ artifacts.x.y }} {{ item }}", "b": ["{{ parameters.p ?? run.id }}", 3]}
    assert list(references(cfg)) == [
        TemplateReference("cfg.a", ("artifacts", "x", "y"), is_optional=False),
        TemplateReference("cfg.a", ("item",), is_optional=False),
        TemplateReference("cfg.b[0]", ("parameters", "p"), is_optional=True),
        TemplateReference("cfg.b[0]", ("run", "id"), is_optional=False),
    ]
    with pytest.raises(InvalidInput):
        list(references("{{ a"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
def test_any_value_comes_through_one_expression_unchanged(value: Any) -> None:
    assert render({"a": ["{{ item }}"]}, {"item": value}) == {"a": [value]}


@settings(deadline=None)
@given(JSON.filter(lambda value: "{{" not in json.dumps(value, ensure_ascii=False)))
def test_what_holds_no_expression_stays_as_it_is(value: Any) -> None:
    assert render(value, {}) == value


@settings(deadline=None)
@given(JSON)
def test_what_a_value_holds_is_never_rendered_again(value: Any) -> None:
    """A contestant who puts braces into an artifact gets braces."""
    scope = {"item": {"text": "{{ secret }}", "value": value}, "secret": "s"}
    assert render("{{ item.text }}", scope) == "{{ secret }}"
    assert render("{{ item }}", scope) == scope["item"]


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_key_can_be_named(key: str, value: str) -> None:
    assert render(f"{{{{ item[{json.dumps(key)}] }}}}", {"item": {key: value}}) == value


@settings(deadline=None)
@given(st.text(alphabet='{}[]".?ab01- \\', max_size=40))
def test_any_text_renders_or_is_refused(text: str) -> None:
    try:
        found = render(text, {"a": {"b": [1]}, "b": 2})
        list(references(text))
    except InvalidInput:
        assert is_templated(text)
    else:
        assert is_templated(text) or found == text
