"""Formulas in statements: converts TeX to MathML, which browsers render natively.

The output of the converter is not trusted: it is parsed, checked against a list of elements and attributes, and
serialized again. A formula that does not pass is shown as TeX.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape, unescape
from typing import Final
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert

_MATHS: Final = re.compile(r'<span class="math (inline|display)">(.*?)</span>', re.DOTALL)
_LONGEST: Final = 4_000
_MOST: Final = 2_000
"""Maximum number of formulas converted per statement; further ones are shown as TeX."""
_SPACE: Final = "{http://www.w3.org/1998/Math/MathML}"
_ELEMENTS: Final = frozenset(
    [
        "math",
        "mi",
        "mn",
        "mo",
        "mtext",
        "mspace",
        "ms",
        "mrow",
        "mfrac",
        "msqrt",
        "mroot",
        "mstyle",
        "mpadded",
        "mphantom",
        "msub",
        "msup",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mmultiscripts",
        "mprescripts",
        "mtable",
        "mtr",
        "mtd",
        "menclose",
    ]
)
_ATTRIBUTES: Final = frozenset(
    [
        "display",
        "displaystyle",
        "scriptlevel",
        "mathvariant",
        "stretchy",
        "fence",
        "separator",
        "form",
        "accent",
        "accentunder",
        "movablelimits",
        "lspace",
        "rspace",
        "minsize",
        "maxsize",
        "linethickness",
        "columnalign",
        "rowspacing",
        "columnspacing",
        "columnlines",
        "rowlines",
        "width",
        "height",
        "depth",
        "notation",
    ]
)


def render_math(html: str) -> str:
    """Convert all TeX in ``html`` (already sanitized) to MathML."""
    left = iter(range(_MOST))
    return _MATHS.sub(lambda found: _mathml(found[2], found[1]) if next(left, None) is not None else found[0], html)


@lru_cache(maxsize=4096)
def _mathml(escaped: str, display: str) -> str:
    tex = unescape(escaped)
    shown = f'<code class="tex">{escape(tex)}</code>'
    if len(tex) > _LONGEST:
        return shown
    try:
        tree = ET.fromstring(convert(tex, display="block" if display == "display" else "inline"))  # noqa: S314  # bounded output of the converter
    except Exception:  # noqa: BLE001  # the converter may raise anything on invalid TeX; show the TeX instead
        return shown
    if not all(_is_allowed(element) for element in tree.iter()):
        return shown
    for element in tree.iter():
        element.tag = element.tag.removeprefix(_SPACE)
    tree.set("aria-label", tex)
    return ET.tostring(tree, encoding="unicode")


def _is_allowed(element: ET.Element) -> bool:
    name = element.tag.removeprefix(_SPACE)
    return element.tag.startswith(_SPACE) and name in _ELEMENTS and _ATTRIBUTES.issuperset(element.attrib)
