"""Who made a problem and where it was used first, in the spellings of both versions of the format."""

from __future__ import annotations

import re

from adjudge.domain.problem import Source
from adjudge.packages.yaml import Listing, Mapping, Node, Scalar, Section

ROLES = ("authors", "contributors", "testers", "packagers", "acknowledgements")
_AND = re.compile(r"[,&]|\band\b")


def read_credits(section: Section, *, is_legacy: bool) -> dict[str, tuple[str, ...]]:
    """Read people by role; translators are under ``translators.<language>``."""
    if is_legacy:
        authors = tuple(name for part in _AND.split(section.take_text("author")) if (name := part.strip()))
        return {"authors": authors} if authors else {}
    node = section.node("credits")
    if isinstance(node, Scalar):
        return {"authors": (node.text,)}
    inner = section.take_section("credits")
    found = {role: people(inner, role) for role in ROLES}
    translators = inner.take_section("translators")
    for language in translators.keys():  # noqa: SIM118  # not a dict
        found[f"translators.{language}"] = people(translators, language)
    inner.leave_unknown()
    return {role: names for role, names in found.items() if names}


def people(section: Section, key: str) -> tuple[str, ...]:
    """Read a person or a list of them."""
    node = section.node(key)
    if node is None:
        return ()
    items = node.items if isinstance(node, Listing) else [node]
    return tuple(name for item in items if (name := _person(section, key, item)))


def _person(section: Section, key: str, node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Mapping) and isinstance(name := node.items.get("name"), Scalar):
        mail = node.items.get("email")
        return f"{name.text} <{mail.text}>" if isinstance(mail, Scalar) else name.text
    section.wrong(key, "a person is a name, or a map with a name.")
    return ""


def read_sources(section: Section, *, is_legacy: bool) -> tuple[Source, ...]:
    """Read where the problem was used."""
    if is_legacy:
        name, url = section.take_text("source"), section.take_text("source_url")
        if url and not name:
            section.wrong("source_url", "needs a source.", "Add source: its name.")
        return (Source(name, url),) if name else ()
    node = section.node("source")
    if node is None:
        return ()
    items = node.items if isinstance(node, Listing) else [node]
    return tuple(source for item in items if (source := _source(section, item)))


def _source(section: Section, node: Node) -> Source | None:
    if isinstance(node, Scalar):
        return Source(node.text)
    if isinstance(node, Mapping) and isinstance(name := node.items.get("name"), Scalar):
        url = node.items.get("url")
        return Source(name.text, url.text if isinstance(url, Scalar) else "")
    section.wrong("source", "a source is a name, or a map with a name and a url.")
    return None
