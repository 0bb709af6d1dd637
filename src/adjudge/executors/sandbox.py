"""``sandbox``: runs one program in the sandbox, with files from the chain or from the file store."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar, Final

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.chains.executor import NodeContext, NodeResult
from adjudge.domain.errors import NodeRefused
from adjudge.domain.limits import MIB, Limits
from adjudge.domain.permissions import Permission
from adjudge.judge.compile import raise_on_sandbox_fault
from adjudge.judge.pipeline import Judge
from adjudge.sandbox import InputFile, SandboxRunReport, SandboxRunSpec

_MAX_OUTPUT_BYTES: Final = 64 * 1024
"""Maximum size of each output in the artifact; for longer ones use `collect` or redirect the output to a file."""
_DIGEST: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "A file of the file store."}
_LIMITS: Final = {
    "cpu_ms": ("How much processor time.", 600_000),
    "wall_ms": ("How long.", 1_200_000),
    "memory_mib": ("How much memory.", 65_536),
    "processes": ("How many processes and threads.", 4_096),
    "output_bytes": ("Standard output and error together.", 1 << 30),
}


class SandboxExecutor:
    """Runs a program in the sandbox, isolated and limited as submissions are: no network, nothing of the host's.

    The artifact has `verdict` (OK TLE MLE OLE RE), `exit_code`, `exit_signal`, `time_ms`, `wall_ms`, `memory_kb`,
    `stdout`, `stderr` (each up to 64 KiB, with `stdout_truncated` and `stderr_truncated`), and `files`: name → `digest`
    and `size_bytes` of what `collect` asked for. A program that fails fails the node for good, unless `check` is
    false; a sandbox that fails is tried again.
    """

    type: ClassVar[str] = "sandbox"
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.EXECUTION_CREATE,)
    can_be_killed: ClassVar[bool] = True
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "argv": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 1000,
                "description": "The program and its arguments; there is no shell. It starts in its own empty folder.",
            },
            "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Its environment."},
            "stdin": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"blob": _DIGEST}, "required": ["blob"]},
                ],
                "description": 'A text, or {"blob": digest}.',
            },
            "files": {
                "type": "array",
                "maxItems": 64,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1},
                        "text": {"type": "string"},
                        "blob": _DIGEST,
                        "executable": {"type": "boolean"},
                    },
                    "required": ["name"],
                    "oneOf": [{"required": ["text"]}, {"required": ["blob"]}],
                    "additionalProperties": False,
                },
                "description": "Files laid into its folder: name, text or blob, executable.",
            },
            "collect": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 32,
                "description": "Names of files that it writes, kept in the file store.",
            },
            "limits": {
                "type": "object",
                "properties": {
                    name: {"type": "integer", "minimum": 1, "maximum": most, "description": words}
                    for name, (words, most) in _LIMITS.items()
                },
                "additionalProperties": False,
                "description": "Where they are not the usual ones: " + ", ".join(_LIMITS) + ".",
            },
            "check": {"type": "boolean", "description": "Whether it must end with OK; true where it is left out."},
        },
        "required": ["argv"],
        "additionalProperties": False,
    }

    def __init__(self, judge: Judge, blobs: BlobStore, cache: BlobCache) -> None:
        self._judge, self._blobs, self._cache = judge, blobs, cache

    async def execute(self, context: NodeContext) -> NodeResult:
        """Run the program; a sandbox run leaves nothing behind, so repeating it is safe."""
        cfg = context.cfg
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-node-")))
            spec = SandboxRunSpec(
                argv=tuple(cfg["argv"]),
                limits=_limits(cfg.get("limits", {})),
                env=cfg.get("env", {}),
                stdin=await self._stdin(cfg.get("stdin"), stack),
                files=tuple([await self._file(item, stack) for item in cfg.get("files", ())]),
                collect=tuple(cfg.get("collect", ())),
                collect_to=folder if cfg.get("collect") else None,
            )
            report = await self._judge.sandbox.run(spec)
            raise_on_sandbox_fault(report, "the node's program")
            found = _document(report)
            found["files"] = {
                name: await self._store(folder / name) for name in spec.collect if _is_file(folder / name, folder)
            }
        await context.log(f"{cfg['argv'][0]}: {report.verdict}, exit code {report.exit_code}, {report.time_ms} ms")
        if cfg.get("check", True) and not report.ok:
            excerpt = report.stderr[:500].decode(errors="replace").strip()
            raise NodeRefused(f"{cfg['argv'][0]} ended with {report.verdict} (exit code {report.exit_code}). {excerpt}")
        return NodeResult(found)

    async def _stdin(self, given: Any, stack: AsyncExitStack) -> Path | bytes | None:
        if isinstance(given, Mapping):
            return await stack.enter_async_context(self._cache.pin(given["blob"]))
        return given.encode() if isinstance(given, str) else None

    async def _file(self, item: Mapping[str, Any], stack: AsyncExitStack) -> InputFile:
        source: Path | bytes
        if "blob" in item:
            source = await stack.enter_async_context(self._cache.pin(item["blob"]))
        else:
            source = item["text"].encode()
        return InputFile(item["name"], source, item.get("executable", False))

    async def _store(self, path: Path) -> dict[str, Any]:
        digest = await self._blobs.put(path)
        return {"digest": digest, "size_bytes": (await self._blobs.stat(digest)).size_bytes}


def _limits(given: Mapping[str, int]) -> Limits:
    usual = Limits()
    cpu_ms = given.get("cpu_ms", usual.cpu_ms)
    return Limits(
        cpu_ms=cpu_ms,
        wall_ms=given.get("wall_ms", max(3 * cpu_ms, usual.wall_ms)),
        memory_bytes=given.get("memory_mib", usual.memory_bytes // MIB) * MIB,
        processes=given.get("processes", usual.processes),
        output_bytes=given.get("output_bytes", usual.output_bytes),
    )


def _is_file(path: Path, folder: Path) -> bool:
    """Whether ``path`` is a regular file inside ``folder``: a program can also leave links or folders."""
    return path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(folder.resolve())


def _document(report: SandboxRunReport) -> dict[str, Any]:
    return {
        "verdict": report.verdict.value,
        "limit": report.limit.value if report.limit else None,
        "exit_code": report.exit_code,
        "exit_signal": report.exit_signal,
        "time_ms": report.time_ms,
        "wall_ms": report.wall_ms,
        "memory_kb": report.mem_kb,
        "stdout": _text(report.stdout),
        "stderr": _text(report.stderr),
        "stdout_truncated": report.stdout_truncated or len(report.stdout) > _MAX_OUTPUT_BYTES,
        "stderr_truncated": report.stderr_truncated or len(report.stderr) > _MAX_OUTPUT_BYTES,
    }


def _text(data: bytes) -> str:
    """Output as text without NUL, which PostgreSQL cannot store."""
    return data[:_MAX_OUTPUT_BYTES].decode(errors="replace").replace("\0", "�")
