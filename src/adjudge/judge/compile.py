"""From sources to something that runs: compiled in the sandbox, once for the same sources, tools and flags.

A compile error is the author's and final; a sandbox that could not run the compiler is ours and raises.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from adjudge.domain.errors import Unavailable
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.retry import RetryClass
from adjudge.judge.artifacts import ArtifactCache
from adjudge.judge.languages import Language, Languages, Toolchain, box_env
from adjudge.judge.sources import Layout, Source, SourceFile, lay_out
from adjudge.sandbox import MERGE, InputFile, LimitKind, Mount, RunReport, RunSpec, RunVerdict, Sandbox

PROGRAM_DIRECTORY: Final = "/app"
"""Where a compiled program is mounted, read-only."""
LOG_BYTES: Final = 64 * 1024
_CACHE_FORMAT: Final = 1
_BUILD_DIRECTORY: Final = "package"


class SandboxFailed(Unavailable):
    """The sandbox could not run a program: try again."""

    code = "SANDBOX_FAILED"


@dataclass(frozen=True, slots=True)
class Executable:
    """A program that is ready to run, in any number of boxes at once."""

    language: str
    """Its id; empty for what needs none: a ready binary, a package's own ``run``."""
    version: str
    directory: Path
    command: tuple[str, ...]
    """argv, with ``{memory_mib}`` where the runtime must be told."""
    mounts: tuple[Mount, ...]
    env: Mapping[str, str] = field(default_factory=box_env)
    out_of_memory: tuple[bytes, ...] = ()

    def argv(self, memory_bytes: int, args: Sequence[str] = ()) -> tuple[str, ...]:
        """The command under a memory limit, with the run's own arguments."""
        memory_mib = str(max(16, memory_bytes // MIB))
        return (*(part.replace("{memory_mib}", memory_mib) for part in self.command), *args)


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """Why there is no program: the author's fault, and final."""

    message: str
    log: str
    limit: LimitKind | None = None
    retry: RetryClass = RetryClass.FINAL


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling came to."""

    executable: Executable | None
    failure: CompileFailure | None = None
    log: str = ""
    """Warnings of a compilation that went well; empty where it came from the cache."""
    time_ms: int = 0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """What the problem grants; a language may need more memory and room."""

    cpu_ms: int = 30_000
    memory_bytes: int = 1024 * MIB

    def for_language(self, language: Language) -> Limits:
        """The box of one compilation."""
        return Limits(
            cpu_ms=self.cpu_ms,
            wall_ms=self.cpu_ms * 2,
            memory_bytes=max(self.memory_bytes, language.compile_memory_mib * MIB),
            processes=256,
            open_files=1024,
            file_bytes=256 * MIB,
            output_bytes=8 * MIB,
            work_bytes=language.compile_work_mib * MIB,
            work_inodes=32_768,
        )


class Compiler:
    """Compiles in a sandbox, and remembers."""

    def __init__(self, box: Sandbox, languages: Languages, cache: ArtifactCache) -> None:
        self._box, self.languages, self._cache = box, languages, cache
        # Weak: a lock lives as long as somebody compiles under it.
        self._in_flight: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def compile(
        self,
        language: Language,
        source: Source,
        *,
        limits: CompileLimits | None = None,
        extra: Sequence[SourceFile] = (),
        flags: Sequence[str] = (),
        entry_point: str = "",
    ) -> Compiled:
        """Turn sources into a program; ``extra`` files are merged in (graders, headers)."""
        layout = lay_out(language, source, extra, entry_point)
        version = await self.languages.version(language, self._box)
        toolchain = self.languages.toolchain(language)
        if not toolchain.usable:
            raise Unavailable(f"{language.name} is not available here: {toolchain.missing}.", language=language.id)
        key = _key(toolchain, version, layout, flags)

        def ready(directory: Path, cached: bool, log: str = "", time_ms: int = 0) -> Compiled:
            made = _executable(toolchain, version, layout, directory)
            return Compiled(made, log=log, time_ms=time_ms, cached=cached)

        # One compilation at a time for the same key: the second finds the first one's result.
        async with self._in_flight.setdefault(key, asyncio.Lock()):
            if (entry := self._cache.get(key)) is not None:
                return ready(entry, cached=True)
            with self._cache.stage() as staged:
                report = await self._run(toolchain, layout, flags, limits or CompileLimits(), staged)
                if report is not None and (failure := _failure(report, language)) is not None:
                    return Compiled(None, failure, time_ms=report.time_ms)
                if not language.keep:
                    _write(staged, layout.files)
                entry = self._cache.put(key, staged)
            log = _log(report) if report else ""
            return ready(entry, cached=False, log=log, time_ms=report.time_ms if report else 0)

    async def _run(
        self, toolchain: Toolchain, layout: Layout, flags: Sequence[str], limits: CompileLimits, staged: Path
    ) -> RunReport | None:
        language = toolchain.language
        if not language.compile:
            return None
        values, lists = _placeholders(layout)
        argv = toolchain.argv(language.compile, values, {**lists, "flags": flags})
        spec = RunSpec(
            argv=tuple(argv),
            limits=limits.for_language(language),
            env=box_env(language.compile_env),
            stderr=MERGE,
            files=tuple(InputFile(file.name, file.data, file.is_executable) for file in layout.files),
            mounts=toolchain.mounts,
            collect=language.keep,
            collect_to=staged if language.keep else None,
        )
        report = await self._box.run(spec)
        refuse_fault(report, "the compiler")
        return report

    async def build(self, name: str, files: Sequence[SourceFile], limits: CompileLimits | None = None) -> Compiled:
        """Prepare a package's program that brings scripts: ``build`` runs in a copy of its folder and makes ``run``."""
        key = sha256(Source(tuple(files)).digest.encode() + b"build").hexdigest()
        made = Executable("", "", Path(), (f"{PROGRAM_DIRECTORY}/{_BUILD_DIRECTORY}/run",), ())
        async with self._in_flight.setdefault(key, asyncio.Lock()):
            entry = self._cache.get(key)
            if entry is None:
                with self._cache.stage() as staged:
                    if failure := await self._build(name, files, limits or CompileLimits(), staged):
                        return Compiled(None, failure)
                    entry = self._cache.put(key, staged)
        return Compiled(_mounted(made, entry))

    async def _build(
        self, name: str, files: Sequence[SourceFile], limits: CompileLimits, staged: Path
    ) -> CompileFailure | None:
        if not any(file.name == "build" for file in files):
            _write(staged / _BUILD_DIRECTORY, files)
            return None
        box = Language("build", name, "", (), "", (), ())
        spec = RunSpec(
            argv=("/usr/bin/env", "-C", f"/work/{_BUILD_DIRECTORY}", "./build"),
            limits=limits.for_language(box),
            env=box_env(),
            stderr=MERGE,
            files=tuple(
                InputFile(
                    f"{_BUILD_DIRECTORY}/{file.name}", file.data, file.is_executable or file.name in ("build", "run")
                )
                for file in files
            ),
            collect=(_BUILD_DIRECTORY,),
            collect_to=staged,
        )
        report = await self._box.run(spec)
        refuse_fault(report, f"the build script of {name}")
        failure = _failure(report, box)
        if failure is None and not (staged / _BUILD_DIRECTORY / "run").is_file():
            return CompileFailure(f"{name}: its build script left no file `run`", _log(report))
        return failure

    def binary(self, name: str, data: bytes) -> Executable:
        """A ready executable of a package (CMS)."""
        key = sha256(data + b"binary").hexdigest()
        entry = self._cache.get(key)
        if entry is None:
            with self._cache.stage() as staged:
                _write(staged, [SourceFile("main", data, is_executable=True)])
                entry = self._cache.put(key, staged)
        return _mounted(Executable("", name, Path(), (f"{PROGRAM_DIRECTORY}/main",), ()), entry)


def refuse_fault(report: RunReport, what: str) -> None:
    """Raise where the sandbox itself failed: no verdict about a program may follow from that."""
    if report.verdict is RunVerdict.SE:
        raise SandboxFailed(
            f"The sandbox could not run {what}: {report.sandbox_error}.", step=str(report.sandbox_error)
        )


def _key(toolchain: Toolchain, version: str, layout: Layout, flags: Sequence[str]) -> str:
    language = toolchain.language
    parts = [
        _CACHE_FORMAT,
        language.id,
        version,
        [toolchain.tools[name] for name in language.tools],
        language.compile,
        list(flags),
        layout.sources,
        layout.main,
        Source(layout.files).digest,
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _placeholders(layout: Layout) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
    stem = layout.main.rpartition(".")[0]
    values = {
        "main": layout.main,
        "stem": stem,
        "class": layout.main_class,
        "dir": PROGRAM_DIRECTORY,
        "memory_mib": "{memory_mib}",
    }
    return values, {"sources": layout.sources}


def _executable(toolchain: Toolchain, version: str, layout: Layout, directory: Path) -> Executable:
    values, lists = _placeholders(layout)
    made = Executable(
        language=toolchain.language.id,
        version=version,
        directory=directory,
        command=tuple(toolchain.argv(toolchain.language.run, values, lists)),
        mounts=toolchain.mounts,
        env=box_env(toolchain.language.run_env),
        out_of_memory=tuple(sign.encode() for sign in toolchain.language.out_of_memory),
    )
    return _mounted(made, directory)


def _mounted(made: Executable, directory: Path) -> Executable:
    return Executable(
        made.language,
        made.version,
        directory,
        made.command,
        (Mount(directory, PROGRAM_DIRECTORY), *made.mounts),
        made.env,
        made.out_of_memory,
    )


def _write(directory: Path, files: Sequence[SourceFile]) -> None:
    for file in files:
        path = directory / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if _is_executable(file) else 0o644)


def _is_executable(file: SourceFile) -> bool:
    return file.is_executable or file.name in ("build", "run")


def _failure(report: RunReport, language: Language) -> CompileFailure | None:
    if report.ok:
        lost = [entry.name for entry in report.collected if entry.error]
        if lost:
            return CompileFailure(f"the compiler left no {lost[0]}", _log(report))
        return None
    words = {
        RunVerdict.TLE: "compilation took too long",
        RunVerdict.MLE: "compilation used too much memory",
        RunVerdict.OLE: "the compiler wrote too much",
    }
    return CompileFailure(words.get(report.verdict, f"{language.name} refused the source"), _log(report), report.limit)


def _log(report: RunReport) -> str:
    """What the compiler said, capped, with the box's own paths taken out."""
    text = report.stdout[:LOG_BYTES].decode("utf-8", "replace").replace("/work/", "")
    if len(report.stdout) > LOG_BYTES or report.stdout_truncated:
        text += "\n… (cut)"
    return text
