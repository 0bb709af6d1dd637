"""Compiles sources in the sandbox, once for the same sources, tools and flags.

A compile error is the author's and final; a sandbox that could not run the compiler raises. Any source leads to a
program or to a compile error.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.retry import RetryClass
from adjudge.judge.compile_cache import CompileCache, CompiledArtifact
from adjudge.judge.languages import Language, Languages, Toolchain, sandbox_env
from adjudge.judge.sources import ProgramSource, SourceFile, SourceLayout, layout_sources
from adjudge.sandbox import (
    MERGE,
    InputFile,
    LimitKind,
    Mount,
    Sandbox,
    SandboxRunReport,
    SandboxRunSpec,
    SandboxVerdict,
)

PROGRAM_DIRECTORY: Final = "/app"
"""Mount point of compiled programs, read-only."""
LOG_BYTES: Final = 64 * 1024
NOT_EXECUTABLE: Final = 126
"""Exit code of shells for a file that cannot be executed."""
ARTIFACT_BYTES_MAX: Final = 128 * MIB
"""A static C++ program has 2.5 MB; precomputed tables may be large. DMOJ has the same limit."""
COMPILATIONS_MAX: Final = max(1, (os.cpu_count() or 1) // 2)
"""A compiler may use a gigabyte, and submissions come in bursts: half of the cores stay free to run programs."""
Turn = Callable[[], AbstractAsyncContextManager[None]]
_CACHE_FORMAT: Final = 1
_BUILD_DIRECTORY: Final = "package"


class SandboxFailed(Unavailable):
    """The sandbox could not run a program: retry."""

    code = "SANDBOX_FAILED"


class LanguageMissing(Unavailable):
    """The tools of the language are not installed here."""

    code = "LANGUAGE_MISSING"


@dataclass(frozen=True, slots=True)
class Executable:
    """A program that is ready to run, in any number of sandbox runs concurrently."""

    language: str
    """Language id; empty for binaries and for a package's own ``run``."""
    version: str
    directory: Path
    command: tuple[str, ...]
    """argv, with ``{memory_mib}`` where the runtime needs the limit."""
    mounts: tuple[Mount, ...]
    env: Mapping[str, str] = field(default_factory=sandbox_env)
    out_of_memory_messages: tuple[bytes, ...] = ()
    artifact: CompiledArtifact | None = field(default=None, repr=False, compare=False)
    """Keeps the directory on disk as long as the program may be run."""
    files: tuple[InputFile, ...] = ()
    """Files in the working directory of a script with several files: scripts open their siblings as ``./name``."""

    @property
    def is_own_file(self) -> bool:
        """Whether the executed file is the compiled file itself, and it exists."""
        own = self.command[0].removeprefix(f"{PROGRAM_DIRECTORY}/")
        return own != self.command[0] and os.path.lexists(self.directory / own)

    def argv(self, memory_bytes: int, args: Sequence[str] = ()) -> tuple[str, ...]:
        """The command for a memory limit, with additional arguments."""
        memory_mib = str(max(16, memory_bytes // MIB))
        return (*(part.replace("{memory_mib}", memory_mib) for part in self.command), *args)


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """Why there is no program: an error of the author, and final."""

    message: str
    log: str
    limit: LimitKind | None = None
    retry: RetryClass = RetryClass.FINAL


@dataclass(frozen=True, slots=True)
class CompileResult:
    """A program, or the reason why there is none."""

    executable: Executable | None
    failure: CompileFailure | None = None
    log: str = ""
    """Warnings of a successful compilation; empty if it came from the cache."""
    time_ms: int = 0
    cached: bool = False
    version: str = ""
    """The version of the compiler, also if it rejected the program."""

    def without_artifact(self) -> CompileResult:
        """For a result, which may be stored long after the last run of the program."""
        return replace(self, executable=replace(self.executable, artifact=None)) if self.executable else self


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """The limits of the problem; a language may need more memory and disk space."""

    cpu_ms: int = 30_000
    memory_bytes: int = 1024 * MIB

    def for_language(self, language: Language, artifact_bytes: int = ARTIFACT_BYTES_MAX) -> Limits:
        return Limits(
            cpu_ms=self.cpu_ms,
            wall_ms=self.cpu_ms * 2,
            memory_bytes=max(self.memory_bytes, language.compile_memory_mib * MIB),
            processes=256,
            open_files=1024,
            file_bytes=artifact_bytes,
            output_bytes=8 * MIB,
            work_bytes=language.compile_work_mib * MIB,
            work_inodes=32_768,
        )


class Compiler:
    """Compiles in a sandbox and caches the programs."""

    def __init__(
        self,
        sandbox: Sandbox,
        languages: Languages,
        cache: CompileCache,
        *,
        artifact_bytes: int = ARTIFACT_BYTES_MAX,
        compilations: int = COMPILATIONS_MAX,
    ) -> None:
        self._box, self.languages, self._cache = sandbox, languages, cache
        self._artifact_bytes = artifact_bytes
        self._compilations = asyncio.Semaphore(compilations)
        # Weak references: a lock exists while somebody compiles under it.
        self._in_flight: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def compile(
        self,
        language: Language,
        source: ProgramSource,
        *,
        limits: CompileLimits | None = None,
        extra: Sequence[SourceFile] = (),
        flags: Sequence[str] = (),
        entry_point: str = "",
        turn: Turn | None = None,
    ) -> CompileResult:
        """Compile sources; ``extra`` files are merged in (graders, headers).

        With a ``turn``, the compiler runs inside it, and only programs compiled inside a turn are reused: a source can
        write what its compiler observed into the program.
        """
        version, toolchain = await self._toolchain(language)
        try:
            layout = layout_sources(language, source, extra, entry_point)
            spec = self._spec(toolchain, layout, flags, limits or CompileLimits())
        except InvalidInput as refused:
            return CompileResult(None, CompileFailure(refused.message, ""), version=version)
        key = _key(toolchain, version, layout, flags, in_turn=turn is not None)

        def ready(artifact: CompiledArtifact, cached: bool, report: SandboxRunReport | None = None) -> CompileResult:
            made = _executable(toolchain, version, layout, artifact)
            if report is None:
                return CompileResult(made, cached=cached, version=version)
            return CompileResult(made, log=_log(report), time_ms=report.time_ms, cached=cached, version=version)

        # One compilation at a time per key: the second one uses the result of the first.
        async with self._in_flight.setdefault(key, asyncio.Lock()):
            if (artifact := self._cache.get(key)) is not None:
                return ready(artifact, cached=True)
            with self._cache.stage() as staged:
                report = await self._run(replace(spec, collect_to=staged), "the compiler", turn) if spec else None
                if report is not None and (failure := self._failure(report)) is not None:
                    return CompileResult(None, failure, time_ms=report.time_ms, version=version)
                if not language.keep:
                    _write(staged, layout.files)
                artifact = await asyncio.to_thread(self._cache.put, key, staged)
            return ready(artifact, cached=False, report=report)

    async def script(self, language: Language, source: ProgramSource) -> Executable | None:
        """A script that runs from the working directory: nothing is checked or cached. None for other languages.

        For many programs that run once: a cache entry and the check of the syntax cost more than the run.
        """
        if language.keep:
            return None
        version, toolchain = await self._toolchain(language)
        layout = layout_sources(language, source)
        values, lists = _placeholders(layout)
        return Executable(
            language=language.id,
            version=version,
            directory=Path(),
            command=tuple(toolchain.argv(_run_command(language, layout), {**values, "dir": "."}, lists)),
            mounts=toolchain.mounts,
            env=sandbox_env(language.run_env),
            out_of_memory_messages=tuple(sign.encode() for sign in language.out_of_memory),
            files=tuple(InputFile(file.name, file.data, file.is_executable) for file in layout.files),
        )

    async def _toolchain(self, language: Language) -> tuple[str, Toolchain]:
        """The version and the tools of a language; raises if it cannot be used here."""
        version = await self.languages.version(language, self._box)
        toolchain = self.languages.toolchain(language)
        if not toolchain.usable:
            raise LanguageMissing(f"{language.name} is not available here: {toolchain.missing}.", language=language.id)
        return version, toolchain

    async def _run(self, spec: SandboxRunSpec, what: str, turn: Turn | None = None) -> SandboxRunReport:
        # The turn first: waiting for it must not block a compilation slot, nor a running compilation wait for a turn.
        async with turn() if turn else nullcontext(), self._compilations:
            report = await self._box.run(spec)
        raise_on_sandbox_fault(report, what)
        refuse_lost(report)
        return report

    def _spec(
        self, toolchain: Toolchain, layout: SourceLayout, flags: Sequence[str], limits: CompileLimits
    ) -> SandboxRunSpec | None:
        language = toolchain.language
        if not language.compile:
            return None
        values, lists = _placeholders(layout)
        argv = toolchain.argv(language.compile, values, {**lists, "flags": flags})
        return SandboxRunSpec(
            argv=tuple(argv),
            limits=limits.for_language(language, self._artifact_bytes),
            env=sandbox_env(language.compile_env),
            stderr=MERGE,
            files=tuple(InputFile(file.name, file.data, file.is_executable) for file in layout.files),
            mounts=toolchain.mounts,
            collect=language.keep,
            collect_to=self._cache.root,  # replaced by the stage
        )

    async def build(self, name: str, files: Sequence[SourceFile], limits: CompileLimits | None = None) -> CompileResult:
        """Build a package's program that has scripts: ``build`` runs in a copy of its folder and creates ``run``."""
        key = sha256(ProgramSource(tuple(files)).digest.encode() + b"build").hexdigest()
        made = Executable("", "", Path(), (f"{PROGRAM_DIRECTORY}/{_BUILD_DIRECTORY}/run",), ())
        async with self._in_flight.setdefault(key, asyncio.Lock()):
            artifact = self._cache.get(key)
            if artifact is None:
                with self._cache.stage() as staged:
                    if failure := await self._build(name, files, limits or CompileLimits(), staged):
                        return CompileResult(None, failure)
                    artifact = await asyncio.to_thread(self._cache.put, key, staged)
        return CompileResult(_mounted(made, artifact))

    async def _build(
        self, name: str, files: Sequence[SourceFile], limits: CompileLimits, staged: Path
    ) -> CompileFailure | None:
        if not any(file.name == "build" for file in files):
            _write(staged / _BUILD_DIRECTORY, files)
            return None
        sandbox = Language("build", name, "", (), "", (), ())
        spec = SandboxRunSpec(
            argv=("/usr/bin/env", "-C", f"/work/{_BUILD_DIRECTORY}", "./build"),
            limits=limits.for_language(sandbox, self._artifact_bytes),
            env=sandbox_env(),
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
        report = await self._run(spec, f"the build script of {name}")
        failure = self._failure(report)
        if failure is None and not (staged / _BUILD_DIRECTORY / "run").is_file():
            return CompileFailure(f"{name}: its build script created no file `run`", _log(report))
        return failure

    def binary(self, name: str, data: bytes) -> Executable:
        """An executable from a package (CMS)."""
        key = sha256(data + b"binary").hexdigest()
        artifact = self._cache.get(key)
        if artifact is None:
            with self._cache.stage() as staged:
                _write(staged, [SourceFile("main", data, is_executable=True)])
                artifact = self._cache.put(key, staged)
        return _mounted(Executable("", name, Path(), (f"{PROGRAM_DIRECTORY}/main",), ()), artifact)

    def _failure(self, report: SandboxRunReport) -> CompileFailure | None:
        """Why a compilation produced no program; None if it did."""
        if not report.ok:
            message = _LIMIT_MESSAGES.get(report.verdict, "compilation failed")
            return CompileFailure(message, _log(report), report.limit)
        for entry in report.collected:
            if entry.error:
                return CompileFailure(f"the compiler left {_LOST_MESSAGES[entry.error]} {entry.name}", _log(report))
        size_bytes = sum(entry.size_bytes for entry in report.collected)
        if size_bytes > self._artifact_bytes:
            message = f"the compiled program has {size_bytes} bytes; at most {self._artifact_bytes} are allowed"
            return CompileFailure(message, _log(report))
        return None


_LIMIT_MESSAGES: Final = {
    SandboxVerdict.TLE: "compilation took too long",
    SandboxVerdict.MLE: "compilation used too much memory",
    SandboxVerdict.OLE: "the compiler wrote too much",
}
_LOST_MESSAGES: Final = {
    "ENOENT": "no",
    "EFBIG": "too large a",
    "EINVAL": "something else than files as",
    "ELOOP": "a link as",
    "EXDEV": "a mount as",
    "ENAMETOOLONG": "too many nested directories in",
    "EACCES": "an unreadable",
    "EPERM": "an unreadable",
    "ENXIO": "something else than files as",
}
"""errno names that a source can cause; any other error while copying a program out of the sandbox is a system error."""


def raise_on_sandbox_fault(report: SandboxRunReport, what: str) -> None:
    """Raise if the sandbox itself failed: no verdict may be based on that."""
    if report.verdict is SandboxVerdict.SE:
        raise SandboxFailed(
            f"The sandbox could not run {what}: {report.sandbox_error}.", step=str(report.sandbox_error)
        )


def ended(report: SandboxRunReport, program: Executable, what: str) -> SandboxRunReport:
    """Pass on the report of a run, unless the sandbox failed.

    A program file that the kernel cannot execute is an error of its author (an ELF file may name any interpreter), so
    it is a runtime error; a tool of the host that cannot be executed is a system error.
    """
    fault = report.sandbox_error
    if fault is not None and fault.step == "exec" and program.is_own_file:
        message = f"the program cannot be executed: {fault.text}\n".encode()
        return report._replace(verdict=SandboxVerdict.RE, sandbox_error=None, exit_code=NOT_EXECUTABLE, stderr=message)
    raise_on_sandbox_fault(report, what)
    return report


def refuse_lost(report: SandboxRunReport) -> None:
    """Raise if a file could not be copied out of the sandbox for a reason of the host, such as a full disk."""
    for entry in report.collected:
        if entry.error and entry.error not in _LOST_MESSAGES:
            raise SandboxFailed(f"{entry.name} could not be copied out of the sandbox: {entry.error}.", step="collect")


def _key(toolchain: Toolchain, version: str, layout: SourceLayout, flags: Sequence[str], *, in_turn: bool) -> str:
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
        layout.main_class,
        ProgramSource(layout.files).digest,
        *(["in turn"] if in_turn and language.compile else []),
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _placeholders(layout: SourceLayout) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
    stem = layout.main.rpartition(".")[0]
    values = {
        "main": layout.main,
        "stem": stem,
        "class": layout.main_class,
        "dir": PROGRAM_DIRECTORY,
        "memory_mib": "{memory_mib}",
    }
    return values, {"sources": layout.sources}


def _executable(toolchain: Toolchain, version: str, layout: SourceLayout, artifact: CompiledArtifact) -> Executable:
    values, lists = _placeholders(layout)
    is_script_of_several = not toolchain.language.keep and len(layout.files) > 1
    made = Executable(
        language=toolchain.language.id,
        version=version,
        directory=artifact.directory,
        command=tuple(toolchain.argv(_run_command(toolchain.language, layout), values, lists)),
        mounts=toolchain.mounts,
        env=sandbox_env(toolchain.language.run_env),
        out_of_memory_messages=tuple(sign.encode() for sign in toolchain.language.out_of_memory),
        files=tuple(InputFile(file.name, artifact.directory / file.name) for file in layout.files)
        if is_script_of_several
        else (),
    )
    return _mounted(made, artifact)


def _run_command(language: Language, layout: SourceLayout) -> tuple[str, ...]:
    return language.run_class if language.run_class and layout.main_class else language.run


def _mounted(made: Executable, artifact: CompiledArtifact) -> Executable:
    mounts = (Mount(artifact.directory, PROGRAM_DIRECTORY), *made.mounts)
    return replace(made, directory=artifact.directory, mounts=mounts, artifact=artifact)


def _write(directory: Path, files: Sequence[SourceFile]) -> None:
    for file in files:
        path = directory / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if _is_executable(file) else 0o644)


def _is_executable(file: SourceFile) -> bool:
    return file.is_executable or file.name in ("build", "run")


def _log(report: SandboxRunReport) -> str:
    """The compiler output, truncated, without paths of the sandbox."""
    text = report.stdout[:LOG_BYTES].decode("utf-8", "replace").replace("/work/", "").replace("\0", "␀")
    if len(report.stdout) > LOG_BYTES or report.stdout_truncated:
        text += "\n… (cut)"
    return text
