"""Submissions that are more than one text: several files, an entry point, or one output file per test.

Every way of submitting (API, pages, command line) ends here. Errors name the file and what to change.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from adjudge.domain.errors import InvalidInput
from adjudge.domain.problem import Problem
from adjudge.domain.programs import SourceFormat
from adjudge.judge.languages import EntryPoint, Language
from adjudge.judge.source_bundle import encode_bundle
from adjudge.judge.sources import ProgramSource, SourceFile, is_class_name, match_output_name
from adjudge.packages.source_archive import FileLimits, expand_archives

ENTRY_POINT_MOST: Final = 200
_SHOWN: Final = 10
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)


class StoredSource(NamedTuple):
    """A validated source as it is stored."""

    data: bytes
    size_bytes: int
    """Total size of the files."""
    format: SourceFormat = SourceFormat.TEXT


def decode_source(data: bytes, field: str) -> str:
    """The text of an uploaded file: UTF-8; a byte order mark is removed."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInput(
            f"{field}: invalid UTF-8: byte {data[error.start]:#04x} on line {line}.", field=field
        ) from None


def store_program(
    files: Sequence[SourceFile], entry_point: str, language: Language, limits: FileLimits, field: str
) -> StoredSource:
    """Validate the files of a program; one text file without an entry point is stored as its text."""
    expanded = expand_archives(files, limits, field)
    named = tuple(_checked_text(file, language, field) for file in expanded)
    sources = [file for file in named if _is_source(file, language)]
    if len(named) == 1 and not sources:  # its name does not matter: the language decides it
        sources = [_checked_text(replace(named[0], name=language.source), language, field)]
        named = tuple(sources)
    if not sources:
        endings = ", ".join(f".{ending}" for ending in language.extensions)
        raise InvalidInput(
            f"{field}: none of {_list(named)} is a {language.name} file; name at least one of them *{endings}.",
            field=field,
        )
    if not any(file.data.strip() for file in sources):
        raise InvalidInput(f"{field}: {_list(sources)}: must not be empty.", field=field)
    entry = _entry_point(entry_point, language, named, field)
    size_bytes = sum(len(file.data) for file in named)
    if len(named) == 1 and not entry:
        return StoredSource(named[0].data, size_bytes)
    return StoredSource(encode_bundle(ProgramSource(named, entry)), size_bytes, SourceFormat.FILES)


def _is_source(file: SourceFile, language: Language) -> bool:
    return file.name.rpartition(".")[2] in language.extensions


def _checked_text(file: SourceFile, language: Language, field: str) -> SourceFile:
    """A source file must be text; data files may be anything."""
    if not _is_source(file, language):
        return file
    if b"\0" in file.data:
        line = file.data[: file.data.index(b"\0")].count(b"\n") + 1
        raise InvalidInput(f"{field}: {file.name}: NUL byte on line {line}.", field=field)
    try:
        return replace(file, data=decode_source(file.data, f"{field}: {file.name}").encode())
    except InvalidInput as error:
        raise InvalidInput(error.message, field=field) from None


def _entry_point(entry_point: str, language: Language, files: Sequence[SourceFile], field: str) -> str:
    """The validated entry point; ``field`` names the files, whose prefix in a batch is that of the entry point."""
    if not entry_point:
        return ""
    name = field.removesuffix("files").removesuffix("source") + "entry_point"
    shown = entry_point[:ENTRY_POINT_MOST]
    if language.entry_point is EntryPoint.NONE:
        message = f"{language.name} programs have no entry point; leave it out"
    elif language.entry_point is EntryPoint.CLASS:
        if len(entry_point) <= ENTRY_POINT_MOST and is_class_name(entry_point):
            return entry_point
        message = f"{shown!r} is not the name of a class, such as Main or org.example.Main"
    else:
        if entry_point in {file.name for file in files}:
            return entry_point
        message = f"{shown!r} is not one of the files; use one of: {_list(files)}"
    raise InvalidInput(f"{name}: {message}.", field=name)


def store_outputs(files: Sequence[SourceFile], problem: Problem, limits: FileLimits, field: str) -> StoredSource:
    """Validate output files, and name them as the tests do; tests without a file get no answer."""
    expected = [case.submitted_name for case in problem.cases]
    limits = replace(limits, files=max(limits.files, len(expected)))
    outputs: dict[str, SourceFile] = {}
    for file in expand_archives(files, limits, field):
        name = expected[0] if len(files) == len(expected) == 1 else match_output_name(file.name, expected)
        if name is None:
            raise InvalidInput(
                f"{field}: {file.name}: no test has this output file; expected names: {_names(expected)}.", field=field
            )
        if name in outputs:
            raise InvalidInput(
                f"{field}: {file.name} and {outputs[name].name} are both the output of {name}; leave out one.",
                field=field,
            )
        if len(file.data) > problem.limits.run.output_bytes:
            raise InvalidInput(
                f"{field}: {file.name}: {len(file.data)} bytes exceed the output limit of "
                f"{problem.limits.run.output_bytes}.",
                field=field,
            )
        outputs[name] = file
    named = tuple(replace(file, name=name) for name, file in outputs.items())
    size_bytes = sum(len(file.data) for file in named)
    return StoredSource(encode_bundle(ProgramSource(named)), size_bytes, SourceFormat.FILES)


def zip_files(files: Sequence[SourceFile]) -> bytes:
    """All files as a ZIP archive; equal files make equal archives."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(file.name, _ZIP_TIME), file.data, zipfile.ZIP_DEFLATED)
    return data.getvalue()


def _list(files: Sequence[SourceFile]) -> str:
    return _names([file.name for file in files])


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
