"""Holding a node's cfg to its executor's JSON Schema (draft 2020-12), with errors that people can act on.

At definition time a string may hold an expression that becomes anything, so what a schema says of such a string is
left for later; what it says of everything around it holds already. Before a node runs its cfg is checked again, then
with nothing left out.
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

from adjudge.chains.templating import is_templated
from adjudge.domain.errors import InvalidInput

_SHOWN = 60
_KEPT = 256
_MAX_REPORTED = 20
_LONGEST_NAME = 100
_validators: dict[int, tuple[Mapping[str, Any], Draft202012Validator]] = {}
"""By the identity of their schemas, which they keep alive: a schema belongs to an executor and never changes."""

_KEPT_SOUND = 4_096
_sound: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
"""Cfgs that their schemas allow as they were declared, with those, by identity: a definition never changes."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is none, with a ValueError."""
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        raise ValueError(f"cfg_schema is no JSON Schema: {error.message}") from None


def check_cfg(schema: Mapping[str, Any], cfg: Any, *, place: str = "cfg", templated: bool = False) -> None:
    """Refuse a cfg that its schema does not allow, naming every place; ``templated``: expressions may still stand."""
    found = [
        said
        for error in _validator(schema).iter_errors(cfg)
        if not (templated and _is_excused(error))
        for said in _said(error, place)
    ]
    if found:
        raise InvalidInput(" ".join(dict.fromkeys(found)), field=place)


def check_rendered(schema: Mapping[str, Any], declared: Mapping[str, Any], cfg: Any) -> None:
    """Refuse a cfg that is about to be used; one that is just as it was declared is looked at once."""
    is_constant, known = cfg == declared, _sound.get(id(declared))
    if is_constant and known is not None and known[0] is declared and known[1] is schema:
        return
    check_cfg(schema, cfg)
    if is_constant:
        if len(_sound) >= _KEPT_SOUND:
            _sound.clear()
        _sound[id(declared)] = (declared, schema)


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Made once for each schema: making one takes several times as long as a check."""
    known = _validators.get(id(schema))
    if known is None:
        if len(_validators) >= _KEPT:
            _validators.clear()
        known = _validators[id(schema)] = (schema, Draft202012Validator(dict(schema)))
    return known[1]


def _is_excused(error: ValidationError) -> bool:
    """Whether it may vanish once expressions have become values."""
    if is_templated(error.instance):
        return True
    if error.validator not in ("anyOf", "oneOf"):
        return False
    branches: dict[Any, list[ValidationError]] = defaultdict(list)
    for inner in error.context or ():
        branches[inner.schema_path[0]].append(inner)
    return any(all(_is_excused(inner) for inner in branch) for branch in branches.values())


def _said(error: ValidationError, place: str) -> Iterator[str]:
    where = place + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in map(_step, error.absolute_path)
    )
    given = json.dumps(error.instance, ensure_ascii=False, default=str)
    given = given if len(given) <= _SHOWN else given[:_SHOWN] + "…"
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        yield from _unknown(error, where)
    elif error.validator == "required":
        yield f"{where}: {error.message.split(' is a ')[0]} is missing; give it."
    elif error.validator in ("anyOf", "oneOf"):
        yield f"{where}: {_choices(error) or f'{given} fits none of the ways it may be given'}."
    else:
        yield f"{where}: {given} cannot be used: {_rule(error)}."


def _choices(error: ValidationError) -> str | None:
    """What to give, where the ways differ by what is there."""
    ways: Any = error.validator_value
    if not all(set(way) == {"required"} for way in ways):
        return None
    names = ", ".join(" and ".join(way["required"]) for way in ways)
    return f"give one of {names}" if error.validator == "anyOf" else f"give exactly one of {names}"


def _step(step: Any) -> str | int:
    return step if isinstance(step, int) else str(step)


def _unknown(error: ValidationError, where: str) -> Iterator[str]:
    given: Any = error.instance
    known = sorted(error.schema.get("properties", {})) if isinstance(error.schema, Mapping) else []
    unknown = sorted(set(map(str, given)) - set(known))
    for name in unknown[:_MAX_REPORTED]:
        near = difflib.get_close_matches(name[:_LONGEST_NAME], known, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"the names are: {', '.join(known) or 'none'}."
        yield f"{where}: there is no {name[:_LONGEST_NAME]!r}; {fix}"
    if len(unknown) > _MAX_REPORTED:
        yield f"{where}: and {len(unknown) - _MAX_REPORTED} more names that are not known."


def _rule(error: ValidationError) -> str:
    value: Any = error.validator_value
    if error.validator == "type":
        return f"it must be {' or '.join(_names(value))}"
    if error.validator == "enum":
        return f"choose one of {', '.join(map(str, value))}"
    if error.validator == "pattern" and isinstance(error.schema, Mapping) and "$comment" in error.schema:
        return str(error.schema["$comment"])  # the pattern in words, where it is one that nobody could read
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "minLength": "its length must be at least",
        "maxLength": "its length may be at most",
        "minItems": "its entries must be at least",
        "maxItems": "its entries may be at most",
        "pattern": "it must match",
        "const": "it must be",
    }
    name = str(error.validator)
    return f"{words[name]} {value}" if name in words else error.message


def _names(value: Any) -> list[str]:
    kinds = [value] if isinstance(value, str) else list(value)
    words = {"object": "an object", "array": "a list", "string": "a text", "integer": "a whole number"}
    words |= {"number": "a number", "boolean": "true or false", "null": "null"}
    return [words.get(kind, kind) for kind in kinds]
