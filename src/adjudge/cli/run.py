"""``adjudge run``: runs one program in the sandbox."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from adjudge import settings as settings_source
from adjudge.cli.options import aliased_option
from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import KIB, MIB, Limits
from adjudge.sandbox import InputFile, Mount, Sandbox, SandboxRunReport, SandboxRunSpec, SandboxVerdict

EXIT_PROGRAM_FAILED: Final = 1
EXIT_INTERNAL_ERROR: Final = 2
_SANDBOX_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_DEFAULTS: Final = Limits()


@click.command(name="run", context_settings={"ignore_unknown_options": False})
@click.option(
    "--cpu-ms", default=_DEFAULTS.cpu_ms, show_default=True, help=("CPU time limit of the process tree, in ms.")
)
@click.option("--wall-ms", default=_DEFAULTS.wall_ms, show_default=True, help="Wall-clock time limit, in ms.")
@aliased_option(
    "--memory-mib",
    aliases=["--memory-mb"],
    default=_DEFAULTS.memory_bytes // MIB,
    show_default=True,
    help="Memory limit, in MiB.",
)
@click.option(
    "--processes", default=_DEFAULTS.processes, show_default=True, help=("Maximum number of processes and threads.")
)
@aliased_option(
    "--output-kib",
    aliases=["--output-kb"],
    default=_DEFAULTS.output_bytes // KIB,
    show_default=True,
    help=("Output limit (stdout and stderr), in KiB."),
)
@click.option(
    "--stdin",
    "stdin_name",
    metavar="FILE",
    help=("Standard input of the program; - for this command's stdin. Default: empty."),
)
@click.option("--file", "files", multiple=True, metavar="NAME=PATH", help="Copy PATH to /work/NAME.")
@click.option("--mount", "mounts", multiple=True, metavar="PATH:TARGET", help="Mount PATH read-only at TARGET.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help=("Set an environment variable. The caller's environment is not passed on."),
)
@click.option("--collect", multiple=True, metavar="NAME", help="Copy NAME from /work after the run.")
@click.option(
    "--collect-to",
    type=click.Path(path_type=Path),
    default=Path(),
    help=("Target folder of --collect. Default: current folder."),
)
@click.option("--json", "as_json", is_flag=True, help="Print the report and the output as JSON.")
@click.option("--unsafe", is_flag=True, help="Run even where no cgroup limits memory and CPU time.")
@click.argument("argv", nargs=-1, required=True)
def command(argv: tuple[str, ...], as_json: bool, unsafe: bool, **options: Any) -> None:
    """Run one program in the sandbox.

    Example: adjudge run --cpu-ms 500 -- python3 -c 'print(6 * 7)'. The program starts in an empty /work and sees only
    system programs and libraries, --file and --mount. Its output is passed through; the report is printed to stderr, or
    to stdout as JSON with --json.

    Exit codes: 0 success, 1 RE, TLE, MLE or OLE, 2 system error (SE), 3 invalid arguments.
    """
    output_bytes = options["output_kib"] * KIB
    unsafe = unsafe or settings_source.load().judge.allow_without_cgroup
    report = asyncio.run(_run(_spec(argv, options), output_bytes, unsafe))
    if as_json:
        click.echo(json.dumps(as_dict(report)))
    else:
        _write_output(report)
    if report.verdict is SandboxVerdict.SE:
        raise click.exceptions.Exit(EXIT_INTERNAL_ERROR)
    raise click.exceptions.Exit(0 if report.ok else EXIT_PROGRAM_FAILED)


async def _run(spec: SandboxRunSpec, output_bytes: int, unsafe: bool) -> SandboxRunReport:
    # One run needs no agent: the command is one process less to start.
    sandbox = Sandbox(
        slots=1, use_agent=False, unsafe=unsafe, stdout_limit_bytes=output_bytes, stderr_limit_bytes=output_bytes
    )
    async with sandbox as box:
        return await box.run(spec)


def _spec(argv: tuple[str, ...], options: dict[str, Any]) -> SandboxRunSpec:
    limits = Limits(
        cpu_ms=options["cpu_ms"],
        wall_ms=options["wall_ms"],
        memory_bytes=options["memory_mib"] * MIB,
        processes=options["processes"],
        output_bytes=options["output_kib"] * KIB,
    )
    files = tuple(_file(text) for text in options["files"])
    return SandboxRunSpec(
        argv=(_program(argv[0], files), *argv[1:]),
        limits=limits,
        env=dict(_pair("--env", text) for text in options["variables"]),
        stdin=_stdin(options["stdin_name"], limits.input_bytes),
        files=files,
        mounts=tuple(_mount(text) for text in options["mounts"]),
        collect=options["collect"],
        collect_to=options["collect_to"].resolve() if options["collect"] else None,
    )


def _program(name: str, files: tuple[InputFile, ...]) -> str:
    """Resolve a program name as in the sandbox: /work first, then the system path."""
    if "/" in name:
        return name
    if any(file.name == name for file in files):
        return f"/work/{name}"
    found = shutil.which(name, path=_SANDBOX_PATH)
    if found is None:
        raise InvalidInput(
            f"argv: program {name!r} not found in {_SANDBOX_PATH}; add it with --file {name}=PATH.", field="argv"
        )
    return found


def _pair(option: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput(f"{option}: expected NAME=VALUE, got {text!r}.", field=option)
    return name, value


def _file(text: str) -> InputFile:
    name, value = _pair("--file", text)
    path = Path(value).resolve()
    if not path.is_file():
        raise InvalidInput(f"--file: file not found: {value!r}.", field="--file")
    return InputFile(name, path, executable=bool(path.stat().st_mode & 0o111))


def _mount(text: str) -> Mount:
    source, separator, target = text.rpartition(":")
    if not separator or not source:
        raise InvalidInput(f"--mount: expected PATH:TARGET, got {text!r}.", field="--mount")
    path = Path(source).resolve()
    if not path.exists():
        raise InvalidInput(f"--mount: path not found: {source!r}.", field="--mount")
    return Mount(path, target)


def _stdin(name: str | None, limit_bytes: int) -> Path | bytes | None:
    if name is None:
        return None
    if name == "-":
        return sys.stdin.buffer.read(limit_bytes + 1)
    path = Path(name).resolve()
    if not path.is_file():
        raise InvalidInput(f"--stdin: file not found: {name!r}.", field="--stdin")
    return path


def as_dict(report: SandboxRunReport) -> dict[str, Any]:
    """The report for --json; output that is not UTF-8 is decoded with replacement characters."""
    body = report._asdict()
    body["sandbox_error"] = asdict(report.sandbox_error) if report.sandbox_error else None
    body["collected"] = [asdict(entry) for entry in report.collected]
    return body | {name: body[name].decode(errors="replace") for name in ("stdout", "stderr")}


def _write_output(report: SandboxRunReport) -> None:
    for stream, body in ((sys.stdout, report.stdout), (sys.stderr, report.stderr)):
        stream.flush()
        stream.buffer.write(body)
        stream.flush()
    click.echo(describe(report), err=True)


def describe(report: SandboxRunReport) -> str:
    """The report in one line."""
    if report.sandbox_error is not None:
        return f"SE: {report.sandbox_error}"
    ending = f"signal {report.exit_signal}" if report.exit_signal else f"exit code {report.exit_code}"
    verdict = f"{report.verdict} ({report.limit})" if report.limit else str(report.verdict)
    figures = f"CPU {report.time_ms} ms, wall {report.wall_ms} ms, memory {report.mem_kb} KiB ({report.memory_source})"
    truncated = " output truncated;" if report.stdout_truncated or report.stderr_truncated else ""
    return f"{verdict}: {ending};{truncated} {figures}"
