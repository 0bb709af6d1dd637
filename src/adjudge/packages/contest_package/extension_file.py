"""Reads and writes the extension: ``adjudge.json``, and the lines of ``adjudge/submissions.ndjson``."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.states import SUBMISSION, SubmissionStatus
from adjudge.packages.contest_package.model import (
    EXTENSION_FILE,
    EXTENSION_VERSION,
    SOURCES_FOLDER,
    SUBMISSIONS_FILE,
    ContestPackage,
    Extension,
    SubmissionRecord,
)
from adjudge.packages.contest_package.typed_json import Report, decode_value, encode_value
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings

MAX_EXTENSION_BYTES: Final = 64 * 1024 * 1024
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
_MAX_FINDINGS: Final = 100
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def write_document(value: object) -> bytes:
    """A JSON document in canonical form: sorted keys, so that equal values have equal bytes."""
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def write_extension(extension: Extension) -> bytes:
    """``adjudge.json``."""
    return write_document(encode_value(extension))


def write_record(record: SubmissionRecord) -> bytes:
    """One line of ``adjudge/submissions.ndjson``."""
    text = json.dumps(encode_value(record), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode() + b"\n"


def read_extension(files: PackageFiles, findings: Findings) -> Extension | None:
    """Read ``adjudge.json``; None, with findings, if it is invalid."""
    if files.size_bytes(EXTENSION_FILE) > MAX_EXTENSION_BYTES:
        findings.error(EXTENSION_FILE, f"is longer than {MAX_EXTENSION_BYTES} bytes.")
        return None
    document = _parse(files.locate(EXTENSION_FILE).read_bytes(), EXTENSION_FILE, 0, findings)
    if document is None:
        return None
    version = document.get("version") if isinstance(document, dict) else None
    if version != EXTENSION_VERSION:
        fix = f"This version of Adjudge reads version {EXTENSION_VERSION}."
        findings.error(EXTENSION_FILE, f"version: {str(version)[:20]!r} is unknown.", fix)
        return None
    return decode_value(Extension, document, lambda path, message: findings.error(EXTENSION_FILE, f"{path}: {message}"))


def _parse(data: bytes, path: str, line: int, findings: Findings) -> Any:
    try:
        return json.loads(data)
    except RecursionError:
        findings.error(path, "is nested too deeply.", line=line)
    except ValueError as error:
        findings.error(path, f"is not valid JSON: {str(error)[:120]}.", line=line)
    return None


@dataclass(frozen=True, slots=True)
class RecordNames:
    """What a submission may refer to."""

    problems: Collection[str]
    teams: Collection[str]
    users: Collection[str]


def record_names(package: ContestPackage) -> RecordNames:
    """The problems, teams and users of a package."""
    people = package.people
    return RecordNames(
        {item.id for item in package.problems},
        {item.code for item in people.teams},
        {item.code for item in people.accounts},
    )


def iter_records(files: PackageFiles, names: RecordNames, findings: Findings) -> Iterator[SubmissionRecord]:
    """Read the submissions one by one, in the order of their numbers; lines with findings are left out."""
    last = reported = 0
    with files.locate(SUBMISSIONS_FILE).open("rb") as stream:
        for line, data in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
            found = Findings()
            record = _read_record(data, line, found)
            if record is not None:
                _check_record(record, last, names, files, _reporter(line, found))
                last = max(last, record.number)
            if found.has_errors:
                reported += len(found.items)
                findings.items.extend(found.items)
                if reported >= _MAX_FINDINGS:
                    findings.error(SUBMISSIONS_FILE, "has more errors; only the first are listed.", line=line)
                    return
            elif record is not None:
                yield record


def _read_record(data: bytes, line: int, findings: Findings) -> SubmissionRecord | None:
    if len(data) > MAX_LINE_BYTES:
        findings.error(SUBMISSIONS_FILE, f"has a line longer than {MAX_LINE_BYTES} bytes.", line=line)
        return None
    document = _parse(data, SUBMISSIONS_FILE, line, findings)
    if document is None:
        return None

    return decode_value(SubmissionRecord, document, _reporter(line, findings))


def _reporter(line: int, findings: Findings) -> Report:
    return lambda path, message: findings.error(SUBMISSIONS_FILE, f"{path}: {message}", line=line)


def _check_record(record: SubmissionRecord, last: int, names: RecordNames, files: PackageFiles, error: Report) -> None:
    if record.number <= last:
        error("number", f"{record.number} does not follow {last}; numbers must increase.")
    if record.problem not in names.problems:
        error("problem", f"there is no problem {record.problem[:60]!r} in the package.")
    if record.team not in names.teams:
        error("team", f"there is no team {record.team[:60]!r} in the package.")
    for field in ("user", "verified_by", "overridden_by"):
        user = getattr(record, field)
        if user is not None and user not in names.users:
            error(field, f"there is no account {user[:60]!r} in the package.")
    if not _DIGEST.fullmatch(record.source) or f"{SOURCES_FOLDER}/{record.source}" not in files:
        error("source", f"there is no file {SOURCES_FOLDER}/{record.source[:64]}.")
    _check_state(record, error)


def _check_state(record: SubmissionRecord, error: Report) -> None:
    is_judged = record.status in SUBMISSION.terminal - {SubmissionStatus.CANCELED}
    if (record.verdict is not None) != is_judged:
        error("verdict", f"must be given exactly for a judged submission; the status is {record.status}.")
    elif record.verdict is not None and record.verdict.status is not record.status:
        error("status", f"must be {record.verdict.status} for the verdict {record.verdict}.")
    if (record.finished_at is not None) != (record.status in SUBMISSION.terminal):
        error("finished_at", f"must be given exactly for a finished submission; the status is {record.status}.")
    if (record.override_verdict is None) != (record.overridden_at is None):
        error("overridden_at", "must be given together with override_verdict.")
    if (record.verified_at is None) != (record.verified_by is None):
        error("verified_by", "must be given together with verified_at.")
    if record.number < 1:
        error("number", "must be at least 1.")
