"""XML from packages: no document type, no entities, bounded depth and size.

Uses expat without expansion and external files: a document that declares a type or an entity is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from adjudge.packages.findings import Findings

MAX_DEPTH = 30
MAX_ELEMENTS = 500_000


@dataclass(slots=True)
class XmlElement:
    """An element with its attributes, children and line."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def first(self, path: str) -> XmlElement | None:
        return next(iter(self.all(path)), None)

    def all(self, path: str) -> list[XmlElement]:
        result = [self]
        for step in path.split("/"):
            result = [child for element in result for child in element.children if child.tag == step]
        return result

    def text_at(self, path: str, default: str = "") -> str:
        element = self.first(path)
        return element.text.strip() if element is not None else default


class _Refused(Exception):
    pass


class _Tree:
    def __init__(self, parser: expat.XMLParserType) -> None:
        self._parser = parser
        self._stack: list[XmlElement] = []
        self._texts: list[list[str]] = []
        """Pieces of text by depth: an element's text may come in several pieces."""
        self._count = 0
        self.root: XmlElement | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._stack) >= MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise _Refused(f"is deeper than {MAX_DEPTH} elements or has more than {MAX_ELEMENTS}.")
        element = XmlElement(tag, attributes, self._parser.CurrentLineNumber)
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self.root = element
        self._stack.append(element)
        self._texts.append([])

    def end(self, _tag: str) -> None:
        self._stack.pop().text = "".join(self._texts.pop())

    def characters(self, data: str) -> None:
        if self._texts:
            self._texts[-1].append(data)

    def refuse(self, *_: object) -> None:
        raise _Refused("declares a document type or an entity, which is not allowed.")


def parse_xml(data: bytes, path: str, findings: Findings) -> XmlElement | None:
    """Parse a document; None, with a finding, if it is invalid."""
    parser = expat.ParserCreate()
    tree = _Tree(parser)
    parser.buffer_text = True
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.characters
    parser.StartDoctypeDeclHandler = tree.refuse
    parser.EntityDeclHandler = tree.refuse
    try:
        parser.Parse(data, True)
    except _Refused as error:
        findings.error(path, str(error), line=parser.CurrentLineNumber)
        return None
    except (expat.ExpatError, ValueError, LookupError) as error:
        findings.error(path, f"is not valid XML: {error}.", line=parser.CurrentLineNumber)
        return None
    return tree.root
