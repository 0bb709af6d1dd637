"""YAML for packages: every scalar stays the text that was written, with its line.

YAML 1.1 turns ``5:00:00`` into 18000, ``no`` into false and leaves ``1e-6`` a string; converting by schema avoids this.
Trees are built from parser events with bounds on depth and size, so neither nesting nor aliases can exhaust memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from adjudge.packages.findings import Findings

MAX_DEPTH = 40
MAX_NODES = 200_000
MAX_NUMBER = 1e15
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "yes", "on", "y"})
_FALSE = frozenset({"false", "no", "off", "n"})


@dataclass(slots=True)
class YamlScalar:
    """A value as it was written."""

    text: str
    line: int
    is_quoted: bool = False

    @property
    def is_null(self) -> bool:
        return not self.is_quoted and self.text in _NULLS


@dataclass(slots=True)
class YamlList:
    """A list."""

    items: list[YamlNode]
    line: int


@dataclass(slots=True)
class YamlMap:
    """A map with string keys. ``key_lines`` has the line of each."""

    items: dict[str, YamlNode]
    line: int
    key_lines: dict[str, int] = field(default_factory=dict)


YamlNode = YamlScalar | YamlList | YamlMap


class _Unusable(Exception):
    def __init__(self, message: str, line: int) -> None:
        self.message = message
        self.line = line
        super().__init__(message)


def parse_yaml(text: str, path: str, findings: Findings) -> YamlNode | None:
    """Parse one document; None if it is empty or, with a finding, invalid."""
    try:
        return _Builder().build(text)
    except _Unusable as error:
        findings.error(path, error.message, line=error.line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        findings.error(path, f"is not valid YAML: {error.problem or error.context}.", line=mark.line + 1 if mark else 0)
    except (yaml.YAMLError, ValueError) as error:
        findings.error(path, f"is not valid YAML: {str(error).splitlines()[0]}.")
    return None


class _Builder:
    """Builds the tree with its own stack, at most ``MAX_DEPTH`` deep."""

    def __init__(self) -> None:
        self._stack: list[tuple[YamlList | YamlMap, YamlScalar | None]] = []
        self._root: YamlNode | None = None
        self._anchors: dict[str, YamlNode] = {}
        self._nodes = 0
        self._documents = 0

    def build(self, text: str) -> YamlNode | None:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    raise _Unusable("has more than one YAML document.", line)
            elif isinstance(event, yaml.ScalarEvent):
                self._add(YamlScalar(event.value, line, event.style is not None), event.anchor)
            elif isinstance(event, yaml.SequenceStartEvent):
                self._open(YamlList([], line), event.anchor)
            elif isinstance(event, yaml.MappingStartEvent):
                self._open(YamlMap({}, line), event.anchor)
            elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                self._stack.pop()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event.anchor, line)
        if isinstance(self._root, YamlScalar) and self._root.is_null:
            return None
        return self._root

    def _open(self, node: YamlList | YamlMap, anchor: str | None) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise _Unusable(f"is nested deeper than {MAX_DEPTH} levels.", node.line)
        self._add(node, anchor)
        self._stack.append((node, None))

    def _alias(self, anchor: str | None, line: int) -> None:
        node = self._anchors.get(anchor or "")
        if node is None or any(node is parent for parent, _ in self._stack):
            raise _Unusable(f"has an alias to {anchor!r}, which is not finished before it.", line)
        self._count(_size(node), line)
        self._add(node, None)

    def _count(self, added: int, line: int) -> None:
        self._nodes += added
        if self._nodes > MAX_NODES:
            raise _Unusable(f"has more than {MAX_NODES} values.", line)

    def _add(self, node: YamlNode, anchor: str | None) -> None:
        self._count(1, node.line)
        if anchor:
            self._anchors[anchor] = node
        if not self._stack:
            self._root = node
            return
        parent, key = self._stack[-1]
        if isinstance(parent, YamlList):
            parent.items.append(node)
        elif key is None:
            if not isinstance(node, YamlScalar):
                raise _Unusable("has a key that is not a string.", node.line)
            if node.text in parent.items:
                raise _Unusable(f"has the key {node.text[:60]!r} twice.", node.line)
            self._stack[-1] = (parent, node)
        else:
            parent.items[key.text] = node
            parent.key_lines[key.text] = key.line
            self._stack[-1] = (parent, None)


def _size(node: YamlNode) -> int:
    """Count the values in a tree with aliases expanded; bounded, since every alias was counted when added."""
    pending, seen = [node], 0
    while pending:
        item = pending.pop()
        seen += 1
        if not isinstance(item, YamlScalar):
            pending.extend(item.items if isinstance(item, YamlList) else item.items.values())
    return seen


class YamlSection:
    """A map read by schema: each ``take_…`` converts one key and reports errors with file and line."""

    def __init__(self, mapping: YamlMap | None, path: str, findings: Findings, prefix: str = "") -> None:
        self._mapping = mapping or YamlMap({}, 0)
        self._path = path
        self._findings = findings
        self._prefix = prefix
        self._taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        node = self._mapping.items.get(key)
        return node is not None and not (isinstance(node, YamlScalar) and node.is_null)

    def keys(self) -> list[str]:
        """The keys in document order."""
        return list(self._mapping.items)

    def line(self, key: str) -> int:
        return self._mapping.key_lines.get(key, self._mapping.line)

    def node(self, key: str) -> YamlNode | None:
        """The value as a node; None if it is absent or null."""
        self._taken.add(key)
        return self._mapping.items[key] if key in self else None

    def error(self, key: str, message: str, fix: str = "") -> None:
        """Report an error in a key's value."""
        self._findings.error(self._path, f"{self._prefix}{key}: {message}", fix, self.line(key))

    def warning(self, key: str, message: str, fix: str = "") -> None:
        """Report a possible mistake in a key's value."""
        self._findings.warning(self._path, f"{self._prefix}{key}: {message}", fix, self.line(key))

    def take_text(self, key: str, default: str = "") -> str:
        node = self.node(key)
        if node is None:
            return default
        if not isinstance(node, YamlScalar):
            self.error(key, "must be a string.")
            return default
        return node.text

    def take_number(self, key: str, default: float, *, least: float = 0.0, above: bool = False) -> float:
        """A number of at least (with ``above``: more than) ``least``."""
        if key not in self:
            self._taken.add(key)
            return default
        value = parse_number(self.take_text(key))
        if value is None or value < least or (above and value == least):
            self.error(
                key, f"must be a number {'above' if above else 'of at least'} {least:g}, at most {MAX_NUMBER:g}."
            )
            return default
        return value

    def take_integer(self, key: str, default: int, *, least: int = 0) -> int:
        value = self.take_number(key, default, least=least)
        if value != int(value):
            self.error(key, "must be an integer.")
            return default
        return int(value)

    def take_flag(self, key: str, *, default: bool) -> bool:
        """A boolean, in any of YAML's spellings."""
        value = self.take_text(key).lower()
        if not value:
            return default
        if value in _TRUE or value in _FALSE:
            return value in _TRUE
        self.error(key, "must be true or false.")
        return default

    def take_choice(self, key: str, options: tuple[str, ...], default: str) -> str:
        value = self.take_text(key, default)
        if value not in options:
            self.error(key, f"{value[:60]!r} is not one of {', '.join(options)}.")
            return default
        return value

    def take_texts(self, key: str, *, split: bool = False) -> tuple[str, ...]:
        """A list of strings; a single string is a list of one or, with ``split``, its words."""
        return parse_strings(self, key, self.node(key), split=split)

    def take_section(self, key: str) -> YamlSection:
        """A map; an absent one is empty."""
        node = self.node(key)
        if node is not None and not isinstance(node, YamlMap):
            self.error(key, "must be a map.")
            node = None
        return YamlSection(node, self._path, self._findings, f"{self._prefix}{key}.")

    def sections(self, key: str) -> list[YamlSection]:
        node = self.node(key)
        if node is None:
            return []
        if not isinstance(node, YamlList) or not all(isinstance(item, YamlMap) for item in node.items):
            self.error(key, "must be a list of maps.")
            return []
        return [
            YamlSection(item, self._path, self._findings, f"{self._prefix}{key}[{index}].")
            for index, item in enumerate(node.items)
            if isinstance(item, YamlMap)
        ]

    def report_unknown_keys(self, *, is_error: bool = False) -> None:
        for key in self._mapping.items:
            if key not in self._taken:
                note = self._findings.error if is_error else self._findings.warning
                note(self._path, f"{self._prefix}{key}: is not a key of this format.", "Remove it.", self.line(key))


def parse_number(text: str) -> float | None:
    """Parse a number of at most ``MAX_NUMBER``; underscores and names of infinities are not numbers.

    A larger one is a mistake, and would become infinite when it is converted to another unit.
    """
    stripped = text.strip()
    if not stripped or not set(stripped) <= set("0123456789+-.eE"):
        return None
    try:
        value = float(stripped)
    except ValueError:
        return None
    return value if abs(value) <= MAX_NUMBER else None


def parse_strings(section: YamlSection, key: str, node: YamlNode | None, *, split: bool = False) -> tuple[str, ...]:
    """A list of strings from a node; a single string is a list of one."""
    if node is None:
        return ()
    if isinstance(node, YamlScalar):
        return tuple(node.text.split()) if split else (node.text,)
    if isinstance(node, YamlList) and all(isinstance(item, YamlScalar) for item in node.items):
        return tuple(item.text for item in node.items if isinstance(item, YamlScalar))
    section.error(key, "must be a list of strings.")
    return ()
