"""Compares a contest package with the stored contest that has its slug, to recognise one that was imported before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.packages.contest_package.extension_file import write_record
from adjudge.packages.contest_package.typed_json import encode_value
from adjudge.packages.contest_package.writer import contest_objects
from adjudge.services.contest_package.export import write_records
from adjudge.services.contest_package.files import OpenedPackage
from adjudge.services.contest_package.load import StoredPackage
from adjudge.store import Tx

_IGNORED: Final = frozenset({"package", "photo", "time_limit", "test_data_count"})
"""What a package may leave out or name differently without meaning another contest."""
_KEYED: Final = {"problems": "id", "groups": "id", "participants": "id", "accounts": "username"}
_WHOLE: Final = ("contest", "removed_intervals", "clarifications", "canned_answers", "awards", "materials")


async def find_differences(tx: Tx, given: OpenedPackage, stored: StoredPackage) -> list[str]:
    """The parts of the package that the stored contest does not have in the same way."""
    package, known = given.package, stored.package
    found = _compare_objects(contest_objects(package), contest_objects(known))
    if package.extension is not None and known.extension is not None:
        found |= _compare_extensions(encode_value(package.extension), encode_value(known.extension))
    if package.has_submissions and await _digest_stored(tx, stored) != _digest_given(given):
        found.add("submissions")
    return sorted(found)


def _compare_objects(given: Mapping[str, Any], known: Mapping[str, Any]) -> set[str]:
    found = set()
    if not _is_part(given["contest"] | {"id": ""}, known["contest"] | {"id": ""}):
        found.add("contest")
    for name in ("problems", "groups", "organizations", "teams", "accounts"):
        if not _all_known(given[name], known[name], "id"):
            found.add(name)
    if given["problems"] and len(given["problems"]) != len(known["problems"]):
        found.add("problems")
    return found


def _compare_extensions(given: Mapping[str, Any], known: Mapping[str, Any]) -> set[str]:
    found = {name for name in _WHOLE if given.get(name) != known.get(name)}
    return found | {
        name for name, key in _KEYED.items() if not _all_known(given.get(name, ()), known.get(name, ()), key)
    }


def _all_known(given: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], key: str) -> bool:
    by_key = {item[key]: item for item in known}
    return all(item[key] in by_key and _is_part(item, by_key[item[key]]) for item in given)


def _is_part(given: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return all(known.get(name) == value for name, value in given.items() if name not in _IGNORED)


class _Hasher:
    """Takes the place of the file that records are written to."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: bytes, /) -> int:
        self.digest.update(data)
        return len(data)


async def _digest_stored(tx: Tx, stored: StoredPackage) -> str:
    hasher = _Hasher()
    await write_records(tx, stored, hasher)
    return hasher.digest.hexdigest()


def _digest_given(given: OpenedPackage) -> str:
    digest = hashlib.sha256()
    for record in given.records():
        digest.update(write_record(record))
    return digest.hexdigest()
