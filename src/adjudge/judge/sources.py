"""Source files: their names in the sandbox, and the choice of the main file or class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath

from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Language
from adjudge.sandbox.spec import check_name

_JAVA_NOISE = re.compile(
    r'//[^\n]*|/\*(?:.*?\*/|.*)|"""(?:.*?"""|.*)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?', re.DOTALL
)
_JAVA_PACKAGE = re.compile(r"\bpackage\s+([\w$.]+)\s*;")
_JAVA_MARK = re.compile(
    r"[{}]|(?P<public>\bpublic\s+)?(?:(?:final|abstract|sealed|strictfp|static)\s+){0,4}"
    r"\b(?:class|interface|enum|record)\s+(?P<name>[\w$]+)|\bstatic\b[^;{}()]{0,200}\bvoid\s+main\s*\("
)
"""All repetitions are bounded, so that matching is linear in the length of the source."""
_JAVA_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
FILES_MAX = 48
"""Maximum files of a program: a sandbox run accepts 64 files, and test cases add some."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a program."""

    name: str
    data: bytes
    is_support: bool = False
    """Copied beside the sources, not compiled itself."""
    is_executable: bool = False

    @property
    def sha256(self) -> str:
        """The digest of the content."""
        return sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """A program as it was submitted, or as it is in the package."""

    files: tuple[SourceFile, ...]
    entry_point: str = ""

    @property
    def size_bytes(self) -> int:
        """Total size of all files."""
        return sum(len(file.data) for file in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 over names and contents."""
        total = sha256()
        for file in sorted(self.files, key=lambda entry: entry.name):
            for part in (file.name.encode(errors="surrogatepass"), file.data):
                total.update(b"%d:" % len(part) + part)
        return total.hexdigest()


@dataclass(frozen=True, slots=True)
class SourceLayout:
    """Sources under their final names, ready to compile."""

    files: tuple[SourceFile, ...]
    sources: tuple[str, ...]
    main: str
    main_class: str = ""


def match_output_name(given: str, expected: Sequence[str]) -> str | None:
    """The expected name of a submitted output file: equal, the end of its path, or the only one with its file name."""
    if given in expected:
        return given
    for name in expected:
        if given.endswith(f"/{name}"):
            return name
    last = given.rpartition("/")[2]
    same = [name for name in expected if name.rpartition("/")[2] == last]
    return same[0] if len(same) == 1 else None


def layout_sources(
    language: Language, source: ProgramSource, extra: Iterable[SourceFile] = (), entry_point: str = ""
) -> SourceLayout:
    """Name the files; ``extra`` files (a grader, a header) are merged in and replace files of the same name."""
    merged = {file.name: file for file in extra}
    own = [_named(language, source)] if len(source.files) == 1 else list(source.files)
    files = (*(file for file in own if file.name not in merged), *merged.values())
    _check_names(files)
    sources = tuple(file.name for file in files if not file.is_support and _is_source(language, file.name))
    if not sources:
        wanted = ", ".join(f".{extension}" for extension in language.extensions)
        raise InvalidInput(f"source: no {language.name} file ({wanted}) among {len(files)} files.", field="source")
    entry = entry_point or source.entry_point
    main = _main_file(language, sources, entry)
    if language.names == "java":
        main_class = _main_class(files, main, entry)
    else:
        main_class = source.entry_point if language.run_class and is_class_name(source.entry_point) else ""
    return SourceLayout(files, sources, main, main_class)


def _check_names(files: Sequence[SourceFile]) -> None:
    """Reject names that cannot exist in one directory."""
    if len(files) > FILES_MAX:
        raise InvalidInput(f"source: {len(files)} files; the limit is {FILES_MAX}.", field="source")
    names = {file.name for file in files}
    for name in names:
        for parent in PurePosixPath(name).parents:
            if str(parent) in names:
                raise InvalidInput(f"source: {str(parent)!r} is both a file and a directory.", field="source")
        check_name("source", name)


def _is_source(language: Language, name: str) -> bool:
    return name.rpartition(".")[2] in language.extensions


def _named(language: Language, source: ProgramSource) -> SourceFile:
    file = source.files[0]
    is_file = language.names != "java" and _is_source(language, source.entry_point)
    return SourceFile(source.entry_point if is_file else single_file_name(language, file.data), file.data)


def single_file_name(language: Language, data: bytes) -> str:
    """The name of a single-file program in the sandbox; for Java it depends on the content."""
    if language.names != "java":
        return language.source
    shape = parse_java(data)
    return f"{shape.public or shape.main or 'Main'}.java"


def _main_file(language: Language, sources: Sequence[str], entry: str) -> str:
    """The entry point if it is a file, else a conventional name, else the first file."""
    if entry in sources:
        return entry
    by_name = {PurePosixPath(name).name: name for name in reversed(sources)}
    for name in language.main_names:
        if name in by_name:
            return by_name[name]
    for name in sources:
        if PurePosixPath(name).stem.lower() == "main":
            return name
    return min(sources)


@dataclass(frozen=True, slots=True)
class JavaFileInfo:
    """Package, public type and main class of a Java file."""

    package: str = ""
    public: str = ""
    main: str = ""
    """The top-level type that has a ``main``."""

    @property
    def qualified_main(self) -> str:
        """The main class with its package; empty if no type has a ``main``."""
        return f"{self.package}.{self.main}" if self.package and self.main else self.main


def parse_java(data: bytes) -> JavaFileInfo:
    """Find package, public type and main class in one pass over the text without comments and strings."""
    text = _JAVA_NOISE.sub(" ", data.decode("utf-8", "replace"))
    package = _JAVA_PACKAGE.search(text)
    depth, current, public, main = 0, "", "", ""
    for mark in _JAVA_MARK.finditer(text):
        found = mark[0]
        if found == "{":
            depth += 1
        elif found == "}":
            depth -= 1
        elif mark["name"]:
            if depth == 0:
                current = mark["name"]
                public = public or (current if mark["public"] else "")
        elif depth == 1 and not main:
            main = current
    return JavaFileInfo(package[1] if package else "", public, main)


def is_class_name(text: str) -> bool:
    """Whether a text is the name of a class of the JVM, with or without its package, and not a source file's."""
    is_name = all(_JAVA_NAME.fullmatch(part) for part in text.split("."))
    return is_name and not text.endswith((".java", ".kt"))


def _main_class(files: Sequence[SourceFile], main: str, entry: str) -> str:
    """The entry point if set, else the class of the main file, else the first class with a main."""
    if is_class_name(entry):
        return entry
    ordered = sorted(
        (file for file in files if file.name.endswith(".java")), key=lambda file: (file.name != main, file.name)
    )
    for file in ordered:
        if qualified := parse_java(file.data).qualified_main:
            return qualified
    return PurePosixPath(main).stem
