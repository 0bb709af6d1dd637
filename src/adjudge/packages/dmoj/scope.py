"""Looks up keys of ``init.yml`` as DMOJ does: in the case, else in its batch, else at the top level."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.packages.findings import Findings
from adjudge.packages.safe_yaml import YamlList, YamlMap, YamlNode, YamlScalar, YamlSection

FILE = "init.yml"


@dataclass(frozen=True, slots=True)
class Scope:
    """The maps in which a key is looked up, innermost first."""

    levels: tuple[YamlMap, ...]
    findings: Findings

    def inner(self, mapping: YamlMap) -> Scope:
        """The scope of a case or batch inside this one."""
        return Scope((mapping, *self.levels), self.findings)

    def own(self, key: str) -> YamlNode | None:
        """Look up a key in the innermost map only."""
        return _lookup(self.levels[0], key)

    def node(self, key: str) -> YamlNode | None:
        """Look up a key in all levels."""
        return next((result for level in self.levels if (result := _lookup(level, key)) is not None), None)

    def section(self) -> YamlSection:
        """The innermost map as a section."""
        return YamlSection(self.levels[0], FILE, self.findings)

    def text(self, key: str, default: str = "") -> str:
        return self._holder(key).take_text(key, default)

    def number(self, key: str, default: float, *, least: float = 0.0) -> float:
        return self._holder(key).take_number(key, default, least=least)

    def flag(self, key: str, *, default: bool) -> bool:
        return self._holder(key).take_flag(key, default=default)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; a single string is a list of one."""
        return self._holder(key).take_texts(key)

    def _holder(self, key: str) -> YamlSection:
        """A section with this key only, wherever it was found."""
        node = self.node(key)
        mapping = None if node is None else YamlMap({key: node}, node.line, {key: node.line})
        return YamlSection(mapping, FILE, self.findings)


def _lookup(mapping: YamlMap, key: str) -> YamlNode | None:
    for spelling in (key, key.replace("_", "-")):
        node = mapping.items.get(spelling)
        if node is not None and not (isinstance(node, YamlScalar) and node.is_null):
            return node
    return None


def refuse_code(root: YamlNode, findings: Findings) -> None:
    """Reject every key that contains Python: ``k+`` an expression, ``k++`` a program."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, YamlList):
            pending += node.items
        elif isinstance(node, YamlMap):
            pending += node.items.values()
            for key in node.items:
                if key.endswith("+"):
                    line = node.key_lines.get(key, node.line)
                    fix = "Write the value itself."
                    findings.error(FILE, f"{key[:40]}: contains Python code, which is never run.", fix, line)
