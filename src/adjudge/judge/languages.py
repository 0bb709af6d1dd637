"""Languages: the table of ``languages.toml``, and the toolchains available on this machine.

Names, aliases, argv templates and toolchain lookup. Compiling is in ``compile``, the choice of the main file or class
in ``sources``.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final, cast

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.limits import MIB, Limits
from adjudge.judge.language_overlay import LanguageSource, find_sources, overlaid, read_overlay
from adjudge.sandbox import Mount, Sandbox, SandboxRunReport, SandboxRunSpec, SandboxVerdict

_SYSTEM_DIRECTORIES: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_SEEN_BY_THE_BOX: Final = ("/usr/", "/bin/", "/lib/", "/lib64/", "/sbin/")
_PROBE_LIMITS: Final = Limits(cpu_ms=20_000, wall_ms=40_000, memory_bytes=1024 * MIB, processes=256)
_ELF: Final = b"\x7fELF"
_VERSION_NUMBER: Final = re.compile(r"\d+(\.\d+)+")


class EntryPoint(StrEnum):
    """What the entry point of a program is."""

    NONE = "none"
    """The compiler finds it: C, C++."""
    CLASS = "class"
    """A class with a ``main``, with its package."""
    FILE = "file"
    """One of the files."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language: how sources become a program."""

    id: str
    name: str
    code: str
    """The code in problem packages; several languages may share one (C++17 and C++20 are ``cpp``)."""
    extensions: tuple[str, ...]
    source: str
    """The file name of a single source."""
    tools: tuple[str, ...]
    """Required programs."""
    run: tuple[str, ...]
    package: str = ""
    """The Debian package of the tools."""
    version: tuple[str, ...] = ()
    compile: tuple[str, ...] = ()
    compile_env: Mapping[str, str] = field(default_factory=dict)
    run_env: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    """Files that compilation produces; empty: the sources are the program."""
    main_names: tuple[str, ...] = ()
    names: str = ""
    """``java``: a source is named after its public class."""
    aliases: tuple[str, ...] = ()
    is_default: bool = False
    """Whether its code and its extensions select it by default."""
    time_factor: float = 1.0
    processes: int = 64
    extra_memory_mib: int = 0
    """Memory of the runtime in addition to the program's own."""
    compile_memory_mib: int = 1024
    compile_work_mib: int = 512
    mounts: tuple[str, ...] = ()
    """Required files of the host outside /usr; glob patterns."""
    needs: tuple[str, ...] = ()
    """Files that must exist in addition to the tools; glob patterns."""
    out_of_memory: tuple[str, ...] = ()
    """Messages of the runtime when it runs out of memory."""
    run_class: tuple[str, ...] = ()
    """The command for a submitted main class, if ``run`` finds the class itself."""
    pin: str = ""
    """The only accepted version: the number in the output of ``version``, or the whole line. Empty: any."""
    disabled: bool = False
    """Not accepted for new programs of users. Programs of problems, and rejudging, still use it."""

    @property
    def entry_point(self) -> EntryPoint:
        """What may be named as the entry point of a program of several files."""
        if self.names == "java" or self.run_class:
            return EntryPoint.CLASS
        parts = "".join((*self.compile, *self.run))
        return EntryPoint.FILE if "{main}" in parts or "{stem}" in parts else EntryPoint.NONE

    def accepts(self, version: str) -> bool:
        """Whether a version of the tools is the pinned one."""
        return not self.pin or self.pin in (version, version_number(version))

    def limits(self, base: Limits, *, factor: float | None = None) -> Limits:
        """The limits of a problem for this language; ``factor`` overrides the language's time factor."""
        scaled = base.scaled(
            time_factor=self.time_factor if factor is None else factor, extra_memory_bytes=self.extra_memory_mib * MIB
        )
        return replace(scaled, processes=max(self.processes, base.processes))


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools of a language on this machine."""

    language: Language
    tools: Mapping[str, str] = field(default_factory=dict)
    """Name → absolute path."""
    mounts: tuple[Mount, ...] = ()
    missing: str = ""
    """What is missing and how to install it; empty if complete."""

    @property
    def usable(self) -> bool:
        return not self.missing

    def argv(self, template: Sequence[str], values: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> list[str]:
        """Fill a template; a part that is the placeholder of a list becomes the whole list."""
        filled: list[str] = []
        for part in template:
            if part.startswith("{") and part[1:-1] in lists:
                filled.extend(lists[part[1:-1]])
            else:
                filled.append(part.format_map(values))
        filled[0] = self.tools.get(filled[0], filled[0])
        return filled

    def probe_spec(self) -> SandboxRunSpec | None:
        """The run that prints the version."""
        if not self.language.version:
            return None
        argv = self.argv(self.language.version, {}, {})
        return SandboxRunSpec(argv=tuple(argv), limits=_PROBE_LIMITS, env=sandbox_env(), mounts=self.mounts)


def sandbox_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The complete environment of a program in the sandbox; nothing is inherited."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TMPDIR": "/tmp"} | dict(  # noqa: S108  # of the sandbox
        extra or {}
    )


class Languages:
    """All languages by id, alias, code and file name."""

    def __init__(
        self,
        languages: Sequence[Language],
        search_path: Sequence[str] = (),
        sources: Mapping[str, LanguageSource] | None = None,
    ) -> None:
        self._by_id = {language.id: language for language in languages}
        self._search_path = (*_SYSTEM_DIRECTORIES, *search_path)
        self._toolchains: dict[str, Toolchain] = {}
        self._versions: dict[str, str] = {}
        self._sources = sources or {}
        self._names: dict[str, Language] = {}
        for language in sorted(languages, key=lambda entry: not entry.is_default):
            for name in (language.code, *language.aliases):
                self._names.setdefault(name, language)
        self._names.update(self._by_id)
        self.digest = sha256(repr(tuple(languages)).encode()).hexdigest()[:16]
        """Identifies the table, so that cached data of another table is not used."""

    @classmethod
    def load(cls, search_path: Sequence[str] = (), overlay: Path | None = None) -> Languages:
        """Read the built-in table, changed and extended by the operator's file."""
        text = resources.files("adjudge.judge").joinpath("languages.toml").read_text("utf-8")
        tables: dict[str, dict[str, Any]] = tomllib.loads(text)
        if overlay is None:
            return cls([_language(key, body) for key, body in tables.items()], search_path)
        changes = read_overlay(overlay)
        merged = overlaid(tables, changes, str(overlay))
        sources = find_sources(tables, changes)
        return cls([_language(key, body) for key, body in merged.items()], search_path, sources)

    def __iter__(self) -> Iterator[Language]:
        return iter(self._by_id.values())

    def get(self, name: str) -> Language:
        """Find a language by id, alias or package code."""
        found = self._names.get(name) or self._names.get(name.lower())
        if found is None:
            raise InvalidInput(
                f"language: unknown language {name!r}; see `adjudge languages`.", field="language", value=name
            )
        return found

    def offered(self) -> list[Language]:
        """The languages that programs of users may have."""
        return [language for language in self._by_id.values() if not language.disabled]

    def get_offered(self, name: str, field: str = "language") -> Language:
        """Find the language of a program that a user sends; a disabled one is rejected."""
        language = self.get(name)
        if language.disabled:
            raise InvalidInput(
                f"{field}: {language.name} is disabled on this installation; see `adjudge languages`.",
                field=field,
                value=name,
            )
        return language

    def source(self, language: Language) -> LanguageSource:
        """Where the entry of a language comes from."""
        return self._sources.get(language.id, LanguageSource())

    def limit_names(self, name: str) -> tuple[str, ...]:
        """The names under which a worker may limit a language: its id and its code."""
        language = self._by_id.get(name)
        return (name,) if language is None else tuple(dict.fromkeys((language.id, language.code)))

    def for_file(self, name: str) -> Language | None:
        """Find a language by file extension."""
        extension = name.rpartition(".")[2] if "." in name else ""
        matching = [language for language in self._by_id.values() if extension in language.extensions]
        return next((language for language in matching if language.is_default), matching[0] if matching else None)

    def toolchain(self, language: Language) -> Toolchain:
        """The toolchain of a language, looked up once."""
        if language.id not in self._toolchains:
            self._toolchains[language.id] = find_toolchain(language, self._search_path)
        return self._toolchains[language.id]

    async def version(self, language: Language, sandbox: Sandbox) -> str:
        """The version that the tools print, read once in the sandbox; tools that do not run there are not usable."""
        if not self.toolchain(language).usable:
            return ""
        if language.id not in self._versions:
            spec = self.toolchain(language).probe_spec()
            self._versions[language.id] = _first_line(await sandbox.run(spec)) if spec else "unknown"
            if missing := _why_unusable(language, self._versions[language.id]):
                self._toolchains[language.id] = replace(self.toolchain(language), missing=missing)
        return self._versions[language.id]


def version_number(version: str) -> str:
    """The version number in the version output of a tool."""
    found = _VERSION_NUMBER.search(version)
    return found[0] if found else version


def _why_unusable(language: Language, version: str) -> str:
    if not version:
        return f"{language.tools[0]} does not run in the sandbox; `apt install {language.package}` provides one"
    if not language.accepts(version):
        return f"version {version_number(version)} is installed, but {language.pin} is pinned; install it or change pin"
    return ""


def _first_line(report: SandboxRunReport) -> str:
    if report.verdict is SandboxVerdict.SE:
        # A transient sandbox fault says nothing about the tools, so nothing is cached.
        raise Unavailable(f"The sandbox could not run a toolchain to read its version: {report.sandbox_error}.")
    text = (report.stdout + b"\n" + report.stderr).decode("utf-8", "replace").strip()
    return text.splitlines()[0][:120] if text and report.ok else ""


def _language(key: str, body: dict[str, Any]) -> Language:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
    values["is_default"] = values.pop("default", False)
    return Language(id=key, **cast("dict[str, Any]", values))


def find_toolchain(language: Language, search_path: Sequence[str]) -> Toolchain:
    """Look up the tools and the mounts that they need."""
    tools: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    for name in language.tools:
        path = _find(name, search_path)
        if path is None:
            return Toolchain(language, missing=f"{name} is not installed; run `apt install {language.package}`")
        tools[name] = path
        for directory in _outside(path):
            mounts[str(directory)] = Mount(directory, str(directory))
    for pattern in language.needs:
        if not glob.glob(pattern):  # noqa: PTH207  # the pattern is absolute
            return Toolchain(language, missing=f"{pattern} is missing; `apt install {language.package}` provides it")
    for pattern in language.mounts:
        for found in glob.glob(pattern):  # noqa: PTH207  # the pattern is absolute
            mounts[found] = Mount(Path(found), found)
    return Toolchain(language, tools, tuple(mounts.values()))


def _find(name: str, search_path: Sequence[str]) -> str | None:
    """The first executable of that name that the sandbox user can run.

    Outside the system directories only a real binary is accepted: shims of version managers are scripts or links that
    need their owner's home directory.
    """
    for directory in search_path:
        path = Path(directory) / name
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if not (stat.S_ISREG(mode) and mode & stat.S_IXOTH):
            continue
        if directory in _SYSTEM_DIRECTORIES or _is_own_binary(path, name):
            return str(path)
    return None


def _is_own_binary(path: Path, name: str) -> bool:
    real = path.resolve()
    try:
        with real.open("rb") as file:
            return file.read(4) == _ELF and real.name.startswith(name) and os.access(real, os.X_OK)
    except OSError:
        return False


def _outside(path: str) -> list[Path]:
    """The installation root of a tool outside the directories visible in the sandbox."""
    real = Path(path).resolve()
    places = {real, Path(path)}
    return [place.parent.parent for place in places if not str(place).startswith(_SEEN_BY_THE_BOX)]
