"""Every URL in a template matches a route that reads all its query parameters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adjudge.web import i18n
from tests.support.links import problem

TEMPLATES = Path(i18n.__file__).parent / "templates"
_LINK = re.compile(r"""(?:href|src|data-live|data-events)="(/[^"]*)\"""")
_FORM = re.compile(r"""<form([^>]*)action="(/[^"]*)"([^>]*)>""")
_LITERAL, _VALUE, _TAG = re.compile(r"{{ '([^']*)' if .*?}}"), re.compile(r"{{.*?}}"), re.compile(r"{%.*?%}")
_WHOLE_QUERY = re.compile(r"\?{{")
"""The whole query is a value; the browser's tests see what it is."""


def _plain(address: str) -> str:
    """An address as it can come out: every value is ``1``, and of choices all are taken."""
    return _TAG.sub("", _VALUE.sub("1", _LITERAL.sub(r"\1", address))).replace("&amp;", "&").partition("#")[0]


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_links_and_forms_match_routes_and_parameters(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = [("GET", address) for address in _LINK.findall(text) if not _WHOLE_QUERY.search(address)]
    forms = [("POST" if "post" in f"{a}{b}" else "GET", address) for a, address, b in _FORM.findall(text)]
    wrong = [problem(method, _plain(address)) for method, address in links + forms]
    assert [item for item in wrong if item] == []


def test_unknown_parameter_is_detected() -> None:
    assert problem("GET", "/api/v1/login/oidc?next=/me") == "GET /api/v1/login/oidc does not read next"
    assert problem("GET", "/nowhere/at/all") == "no route for GET /nowhere/at/all"
    assert problem("POST", "/problems") == "no route for POST /problems"
    assert problem("GET", "/login?next=/me") is None
