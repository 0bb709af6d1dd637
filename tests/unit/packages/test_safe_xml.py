"""XML of packages: text in any number of pieces costs as much as it is long."""

from __future__ import annotations

from adjudge.packages.findings import Findings
from adjudge.packages.safe_xml import parse_xml


def test_text_between_elements_is_joined_in_order() -> None:
    root = parse_xml(b"<a>one<b>inner</b>two<c/>three</a>", "x", Findings())
    assert root is not None
    assert (root.text, root.children[0].text, root.children[1].text) == ("onetwothree", "inner", "")


def test_text_in_many_pieces_is_complete() -> None:
    """Each piece used to be joined to all that came before, which copied gigabytes for a document of some megabytes."""
    root = parse_xml(b"<a>" + b"0123456789<b/>" * 200_000 + b"</a>", "x", Findings())
    assert root is not None
    assert (len(root.text), len(root.children)) == (2_000_000, 200_000)
