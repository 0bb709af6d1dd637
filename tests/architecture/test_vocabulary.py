"""One concept has one word, the one that the field uses: docs/reference/glossary.md lists them.

The words below were used before for something that has a standard name, or for several things at once. They are
forbidden in identifiers, file names, log events and names of SQL statements, so that they do not come back. A word that
is also standard in this field (owner, answer, gate, tail) is not on the list.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.generate_docs import statements

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "scripts", "fuzz", "launcher")
RETIRED = {
    "bell bells": "notification, notifier",
    "brink brinks": "boundary",
    "burial burials buried bury": "dead letter, poison job",
    "canon": "normalizer",
    "complaint complaints": "issue",
    "crowd": "what the fixture holds",
    "desk desks": "batcher, scratch",
    "door doors": "health server, operation",
    "drive drives": "queue",
    "fate": "crash trigger",
    "foresee foreseen foresight": "preloaded data",
    "furnish": "seed",
    "handed": "submitted, released, follow-up",
    "hall halls": "published problem",
    "house houses": "installation, system",
    "knob knobs": "setting",
    "lumber": "deferred unmount",
    "meddle": "intervene",
    "mint minted mints": "new id",
    "moment moments": "timestamp, planned time",
    "nought": "zero",
    "office": "what the fixture holds",
    "onward": "advance",
    "parcel parcels": "delivery request",
    "patrol patrolling patrols": "watchdog, reconciler, housekeeping",
    "pulse": "heartbeat",
    "pump pumps": "dispatcher",
    "rig rigs": "harness",
    "room rooms": "package, capacity",
    "rulebook": "submission rules",
    "seat seats": "slot, connection",
    "shelf shelves": "cache tier",
    "shop": "handler harness",
    "standing": "state, stored, existing",
    "story": "detail, history, trace",
    "stranger strangers": "unknown variables, other user",
    "sugar": "mapped node",
    "takings": "dispatch sequence",
    "tallies tally": "stats, counts",
    "timetable": "cron schedule",
    "told": "notified, reported, logged",
    "town": "cluster",
    "triage": "message validation",
    "vitals": "component health",
    "whoever": "the role: user, caller, worker",
    "wish wishes": "execution request",
}
RETIRED_PHRASES = {
    "by_hand": "manual",
    "give_back": "release",
    "going_on": "follow-up claims",
    "hand_back": "release",
    "hand_in": "submit",
    "is_light": "is_instant",
    "leads_on": "may_spawn_followups",
    "lived_in": "populated database",
    "near_bring": "pin_to_current_cpu",
    "short_way": "(gone)",
}
EXCEPTIONS = {
    ("vitals", "src/adjudge/schema/ops.py"): "a field of the API, which does not change",
}
"""Where a retired word stays, and why."""


_WORDS = {word: use for words, use in RETIRED.items() for word in words.split()}
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
_C_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_C_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)


def retired_words(name: str) -> list[str]:
    """Return the retired words that an identifier consists of."""
    parts = [part.lower() for part in _PART.findall(name)]
    whole = "_" + "_".join(parts) + "_"
    return [word for word in parts if word in _WORDS] + [phrase for phrase in RETIRED_PHRASES if f"_{phrase}_" in whole]


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".c", ".h"} and path != Path(__file__):
                yield path


def _identifiers(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return set(_C_IDENTIFIER.findall(_C_TEXT.sub(" ", text)))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def _log_events(path: Path) -> set[str]:
    """Return the constants that are passed first to a logger, or to an ``Outage``."""
    if path.suffix != ".py" or not path.is_relative_to(ROOT / "src"):
        return set()
    levels = {"debug", "info", "warning", "error", "exception"}
    return {
        argument.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id == "Outage")
            or (isinstance(node.func, ast.Attribute) and node.func.attr in levels)
        )
        for argument in node.args[:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def _found() -> Iterator[tuple[str, str, str]]:
    """Yield each retired word in use, the file, and the name that has it."""
    for path in _files():
        file = str(path.relative_to(ROOT))
        for name in {path.stem, *_identifiers(path), *_log_events(path)}:
            for word in retired_words(name):
                yield word, file, name


def test_retired_words_are_not_used_in_names() -> None:
    wrong = [
        f"{file}: {name} (use: {_WORDS.get(word) or RETIRED_PHRASES[word]})"
        for word, file, name in _found()
        if (word, file) not in EXCEPTIONS
    ]
    assert sorted(wrong) == []


def test_exceptions_are_needed() -> None:
    found = {(word, file) for word, file, _ in _found()}
    assert set(EXCEPTIONS) <= found


def test_statement_names_have_no_retired_words() -> None:
    names = [statement.name for statement in statements()]
    assert len(names) > 100
    assert [name for name in names if retired_words(name)] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PostgresBells", ["bells"]),
        ("_hand_back_soon", ["hand_back"]),
        ("HTTPPump", ["pump"]),
        ("doorway", []),
        ("dead_letter", []),
        ("mint_id", ["mint"]),
    ],
)
def test_words_are_found_in_any_spelling(name: str, words: list[str]) -> None:
    assert retired_words(name) == words
