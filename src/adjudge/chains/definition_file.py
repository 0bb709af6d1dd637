"""Chains as files: YAML or JSON with a name, a description, the DAG and its triggers.

::

    name: nightly
    description: What it is for.
    dag:
      nodes: […]
    triggers:
      - {name: every-night, kind: cron, spec: {cron: "0 3 * * *", timezone: Europe/Berlin}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from adjudge.chains.map_node import expand_map_nodes
from adjudge.chains.triggers import SPECS
from adjudge.chains.validation import check_cfg
from adjudge.domain.errors import InvalidInput
from adjudge.domain.strict_json import encode_json

CHAIN_NAME_PATTERN: Final = r"^[^\s/.\x00-\x1f\x7f](?:[^/\x00-\x1f\x7f]*[^\s/\x00-\x1f\x7f])?$"
"""Of chains and triggers: whatever can stand in an address and on a line. Letters are anybody's.

No dot stands in front: ``..`` would be taken for the place above.
"""
NAME_RULE: Final = "must not contain slashes or control characters, start with a dot, or start or end with a space"
NAME_CHARACTERS: Final = 128
_NAME: Final = {
    "type": "string",
    "pattern": CHAIN_NAME_PATTERN + r"(?!\n)",
    "maxLength": NAME_CHARACTERS,
    "$comment": NAME_RULE,
}
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "name": _NAME,
        "description": {"type": "string", "maxLength": 4000},
        "enabled": {"type": "boolean"},
        "dag": {"type": "object"},
        "triggers": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": _NAME,
                    "kind": {"enum": list(SPECS)},
                    "spec": {"type": "object"},
                    "enabled": {"type": "boolean"},
                },
                "required": ["name", "kind", "spec"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["name", "dag"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class TriggerDefinition:
    """A trigger as a file has it."""

    name: str
    kind: str
    spec: Mapping[str, Any]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ChainDefinition:
    """A chain as a file has it; its DAG has no sugar left and is still to be checked against the executors."""

    name: str
    dag: Mapping[str, Any]
    description: str | None = None
    enabled: bool = True
    triggers: tuple[TriggerDefinition, ...] = field(default=())


class _Loader(yaml.SafeLoader):
    """YAML's plain values, but for timestamps and ``on``/``off``: a chain is JSON that is written comfortably."""


_BOOL: Final = "tag:yaml.org,2002:bool"
_LEFT_OUT: Final = (_BOOL, "tag:yaml.org,2002:timestamp")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _LEFT_OUT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("^(?:true|false|True|False)$"), list("tfTF"))


def read_document(text: str, place: str) -> Any:
    """Read YAML or JSON as plain values; times are texts."""
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader with fewer types
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{place}:{mark.line + 1}" if mark else place
        raise InvalidInput(f"{where}: invalid YAML: {getattr(error, 'problem', None) or error}.", field=place) from None
    encode_json(document, place)
    return document


def read_definition(text: str, place: str = "chain") -> ChainDefinition:
    """Read a file's text; say what is wrong with its line, or with its fields."""
    document = read_document(text, place)
    check_cfg(_SCHEMA, document, place=place)
    triggers = tuple(TriggerDefinition(**item) for item in document.get("triggers", ()))
    check_unique_trigger_names(triggers, f"{place}.")
    return ChainDefinition(
        name=document["name"],
        dag=expand_map_nodes(document["dag"]),
        description=document.get("description"),
        enabled=document.get("enabled", True),
        triggers=triggers,
    )


def check_unique_trigger_names(triggers: Sequence[TriggerDefinition], place: str = "") -> None:
    """Refuse triggers of one name."""
    names = [item.name for item in triggers]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"{place}triggers: the name {twice!r} is used twice; rename one.", field=f"{place}triggers")
