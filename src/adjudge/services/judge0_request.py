"""Reads submissions of the Judge0 API: each becomes an execution, or a map of errors by field.

Numbers and booleans may be strings, as Judge0 accepts them. What Adjudge does not do (network access, limits per
process, programs of several files) is refused with a message, never ignored.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import KIB, MIB
from adjudge.judge.execution import ExecutionOptions
from adjudge.judge.sources import SourceFile
from adjudge.packages.source_archive import FileLimits, expand_archives
from adjudge.services.executions import ExecutionRequest
from adjudge.services.judge0_languages import Judge0Language
from adjudge.services.webhooks import validate_url
from adjudge.settings.sections import ExecutionsSettings

ENCODED: Final = ("source_code", "stdin", "expected_output")
"""Request fields that are base64 if the query says so."""
MULTI_FILE: Final = 89
EXTRACT_BYTES: Final = 4 * MIB
BATCH_MAX: Final = 20
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OPTION_CHARS: Final = 512
_FILES_MAX: Final = 40
_STRIPPED: Final = str.maketrans("", "", "$&;<>|`")
_TRUE: Final = frozenset({True, "1", "t", "true", "T", "TRUE", "on"})
_FALSE: Final = frozenset({False, "0", "f", "false", "F", "FALSE", "off", "", None})
_REFUSED_FLAGS: Final = (
    "enable_network",
    "enable_per_process_and_thread_time_limit",
    "enable_per_process_and_thread_memory_limit",
)

Errors = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class NumberRule:
    """A numeric field: its default and its range."""

    default: float
    minimum: float
    maximum: float
    is_integer: bool = True


def number_rules(settings: ExecutionsSettings) -> dict[str, NumberRule]:
    """The numeric fields; the maximum of times and memory is the operator's (section ``executions``)."""
    cpu_sec, memory_kb = settings.cpu_ms / 1_000, settings.memory_mib * 1_024
    return {
        "cpu_time_limit": NumberRule(min(5, cpu_sec), 0, cpu_sec, is_integer=False),
        "cpu_extra_time": NumberRule(1, 0, 5, is_integer=False),
        "wall_time_limit": NumberRule(min(10, 3 * cpu_sec), 1, 3 * cpu_sec, is_integer=False),
        "memory_limit": NumberRule(min(128_000, memory_kb), 2_048, memory_kb),
        "stack_limit": NumberRule(64_000, 0, 128_000),
        "max_processes_and_or_threads": NumberRule(60, 1, 120),
        "max_file_size": NumberRule(1_024, 0, 4_096),
        "number_of_runs": NumberRule(1, 1, min(20, settings.inputs)),
    }


@dataclass(slots=True)
class _Reader:
    """One submission being read."""

    document: Mapping[str, Any]
    is_base64: bool
    errors: Errors = field(default_factory=dict)

    def refuse(self, name: str, message: str) -> None:
        self.errors.setdefault(name, []).append(message)

    def text(self, name: str) -> str | None:
        value = self.document.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.refuse(name, "must be a string")
            return None
        text = self._decoded(name, value) if self.is_base64 and name in ENCODED else value
        if text is not None and ("\0" in text or _SURROGATE.search(text)):
            self.refuse(name, "must be text without NUL characters and unpaired surrogates")
            return None
        return text

    def _decoded(self, name: str, value: str) -> str | None:
        try:
            return decode_base64(value).decode()
        except ValueError:
            self.refuse(name, "must be UTF-8 text in base64; binary data is not supported")
            return None

    def number(self, name: str, rule: NumberRule) -> float:
        value = self.document.get(name)
        if value is None or value == "":
            return rule.default
        try:
            number = float(value) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self.refuse(name, "is not a number")
        elif rule.is_integer and number != int(number):
            self.refuse(name, "must be an integer")
        elif number < rule.minimum:
            self.refuse(name, f"must be greater than or equal to {rule.minimum:g}")
        elif number > rule.maximum:
            self.refuse(name, f"must be less than or equal to {rule.maximum:g}")
        else:
            return number
        return rule.default

    def flag(self, name: str) -> bool:
        value = self.document.get(name)
        if isinstance(value, list | dict) or value not in _TRUE | _FALSE:
            self.refuse(name, "must be true or false")
            return False
        return value in _TRUE

    def arguments(self, name: str) -> tuple[str, ...]:
        """Arguments of a command line. No shell reads them; characters that Judge0 removes are removed here, too."""
        text = self.text(name) or ""
        if len(text) > _OPTION_CHARS:
            self.refuse(name, f"is too long (maximum is {_OPTION_CHARS} characters)")
            return ()
        try:
            return tuple(shlex.split(text.translate(_STRIPPED)))
        except ValueError as error:
            self.refuse(name, f"cannot be split into arguments: {error}")
            return ()

    def files(self) -> tuple[SourceFile, ...]:
        given = self.document.get("additional_files")
        if given in (None, ""):
            return ()
        try:
            if not isinstance(given, str):
                raise ValueError("not a string")
            archive = SourceFile("additional_files.zip", decode_base64(given))
            return expand_archives([archive], FileLimits(_FILES_MAX, EXTRACT_BYTES), "additional_files")
        except ValueError:
            self.refuse("additional_files", "must be a ZIP archive in base64")
        except InvalidInput as error:
            self.refuse("additional_files", error.message.removeprefix("additional_files: "))
        return ()

    def callback_url(self) -> str | None:
        url = self.text("callback_url")
        if not url:
            return None
        try:
            return validate_url(url)
        except InvalidInput as error:
            self.refuse("callback_url", error.message.removeprefix("url: "))
            return None


def decode_base64(text: str) -> bytes:
    """Decode standard base64; line breaks are ignored, as Judge0 itself writes them."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("not base64") from error


def read_submission(
    document: object, languages: Mapping[int, Judge0Language], rules: Mapping[str, NumberRule], *, is_base64: bool
) -> ExecutionRequest | Errors:
    """The execution that a submission asks for, or what is wrong by field."""
    if not isinstance(document, Mapping):
        return {"submission": ["must be an object"]}
    reader = _Reader(document, is_base64)
    language = _language(reader, languages)
    source = reader.text("source_code")
    if not source and "source_code" not in reader.errors:
        reader.refuse("source_code", "can't be blank")
    numbers = {name: reader.number(name, rule) for name, rule in rules.items()}
    for name in _REFUSED_FLAGS:
        if reader.flag(name):
            reader.refuse(name, "this option cannot be enabled")
    options = ExecutionOptions(
        reader.arguments("command_line_arguments"),
        reader.arguments("compiler_options"),
        reader.flag("redirect_stderr_to_stdout"),
        reader.files(),
    )
    if options.compiler_flags and language is not None and not language.has_compiler_options:
        reader.refuse("compiler_options", f"cannot be set for {language.language.name}")
    stdin, callback_url = reader.text("stdin"), reader.callback_url()
    shown = {"expected_output": reader.text("expected_output")}
    shown |= {name: reader.text(name) for name in ("compiler_options", "command_line_arguments")}
    if reader.errors or language is None or source is None:
        return reader.errors
    integers = {name: int(value) for name, value in numbers.items()}
    return ExecutionRequest(
        language=language.language.id,
        source=source,
        stdins=(stdin or "",) * integers["number_of_runs"],
        cpu_ms=max(1, round(numbers["cpu_time_limit"] * 1_000)),
        wall_ms=round(numbers["wall_time_limit"] * 1_000),
        memory_mib=math.ceil(numbers["memory_limit"] / 1_024),
        other_limits=_other_limits(integers),
        options=options.encode(),
        client_data={"language_id": language.id, "limits": numbers, **shown},
        callback_url=callback_url,
    )


def _other_limits(numbers: Mapping[str, int]) -> dict[str, int]:
    """Limits besides time and memory. The file size also limits stdout, which Judge0 redirects to a file."""
    file_bytes = max(1, numbers["max_file_size"] * KIB)
    return {
        "stack_bytes": numbers["stack_limit"] * KIB,
        "processes": numbers["max_processes_and_or_threads"],
        "file_bytes": file_bytes,
        "output_bytes": file_bytes,
    }


def _language(reader: _Reader, languages: Mapping[int, Judge0Language]) -> Judge0Language | None:
    given = reader.document.get("language_id")
    if given in (None, ""):
        reader.refuse("language_id", "can't be blank")
        return None
    number = int(given) if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 9 else given
    if number == MULTI_FILE:
        reader.refuse("language_id", "multi-file programs (89) are not supported; use a language and additional_files")
        return None
    language = languages.get(number) if isinstance(number, int) else None
    if language is None:
        reader.refuse("language_id", f"language with id {ascii(given)[:40]} doesn't exist")
    return language
