"""Authors and first use of a problem, in the spellings of both format versions."""

from __future__ import annotations

import re

from adjudge.domain.problem import ProblemSource
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode, YamlScalar, YamlSection

ROLES = ("authors", "contributors", "testers", "packagers", "acknowledgements")
_AND = re.compile(r"[,&]|\band\b")


def read_credits(section: YamlSection, *, is_legacy: bool) -> dict[str, tuple[str, ...]]:
    """Read people by role; translators are under ``translators.<language>``."""
    if is_legacy:
        authors = tuple(name for part in _AND.split(section.take_text("author")) if (name := part.strip()))
        return {"authors": authors} if authors else {}
    node = section.node("credits")
    if isinstance(node, YamlScalar):
        return {"authors": (node.text,)}
    inner = section.take_section("credits")
    result = {role: people(inner, role) for role in ROLES}
    translators = inner.take_section("translators")
    for language in translators.keys():  # noqa: SIM118  # not a dict
        result[f"translators.{language}"] = people(translators, language)
    inner.report_unknown_keys()
    return {role: names for role, names in result.items() if names}


def people(section: YamlSection, key: str) -> tuple[str, ...]:
    """Read a person or a list of them."""
    node = section.node(key)
    if node is None:
        return ()
    items = node.items if isinstance(node, YamlList) else [node]
    return tuple(name for item in items if (name := _person(section, key, item)))


def _person(section: YamlSection, key: str, node: YamlNode) -> str:
    if isinstance(node, YamlScalar):
        return node.text
    if isinstance(node, YamlMap) and isinstance(name := node.items.get("name"), YamlScalar):
        mail = node.items.get("email")
        return f"{name.text} <{mail.text}>" if isinstance(mail, YamlScalar) else name.text
    section.error(key, "a person is a name, or a map with a name.")
    return ""


def read_sources(section: YamlSection, *, is_legacy: bool) -> tuple[ProblemSource, ...]:
    """Read where the problem was used."""
    if is_legacy:
        name, url = section.take_text("source"), section.take_text("source_url")
        if url and not name:
            section.error("source_url", "needs a source.", "Add source: its name.")
        return (ProblemSource(name, url),) if name else ()
    node = section.node("source")
    if node is None:
        return ()
    items = node.items if isinstance(node, YamlList) else [node]
    return tuple(source for item in items if (source := _source(section, item)))


def _source(section: YamlSection, node: YamlNode) -> ProblemSource | None:
    if isinstance(node, YamlScalar):
        return ProblemSource(node.text)
    if isinstance(node, YamlMap) and isinstance(name := node.items.get("name"), YamlScalar):
        url = node.items.get("url")
        return ProblemSource(name.text, url.text if isinstance(url, YamlScalar) else "")
    section.error("source", "a source is a name, or a map with a name and a url.")
    return None
