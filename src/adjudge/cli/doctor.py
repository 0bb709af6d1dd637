"""``adjudge doctor``: checks isolation, toolchains and connections of this machine."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from adjudge import settings as settings_source
from adjudge.cli.options import json_option
from adjudge.cli.wiring.judge import load_languages
from adjudge.cli.wiring.transport_security import find_unprotected
from adjudge.judge.languages import Languages
from adjudge.sandbox import Sandbox
from adjudge.sandbox.container_checks import check_container
from adjudge.sandbox.doctor import DoctorReport, HostCheck, HostCheckState, HostFacts, run_checks
from adjudge.sandbox.launcher import default_state_dir
from adjudge.settings import Settings

EXIT_UNSAFE: Final = 1
_COLOURS: Final = {HostCheckState.OK: "green", HostCheckState.DEGRADED: "yellow", HostCheckState.MISSING: "red"}


@click.command(name="doctor")
@click.option(
    "--container",
    "is_container",
    is_flag=True,
    help="Also check what a worker needs in a container or a systemd unit: capabilities, /proc, cgroup, directories.",
)
@json_option
def command(is_container: bool, as_json: bool) -> None:
    """Check whether the sandbox works on this machine.

    Runs a probe program in the sandbox, and warns about connections to other machines without TLS or passwords.
    Exit codes: 0 programs are run on this machine, 1 they are refused because untrusted code is not safe here. If only
    a cgroup is missing, judge.allow_without_cgroup permits them.
    """
    allowed = settings_source.load().judge.allow_without_cgroup
    diagnosis = asyncio.run(_examine(is_container=is_container))
    obstacles = diagnosis.obstacles(allow_without_cgroup=allowed)
    if as_json:
        click.echo(json.dumps(as_dict(diagnosis), indent=2))
    else:
        _print(diagnosis, is_allowed=not obstacles)
    raise click.exceptions.Exit(EXIT_UNSAFE if obstacles else 0)


async def _examine(*, is_container: bool = False) -> DoctorReport:
    settings = settings_source.load()
    diagnosis = await run_checks()
    checks = [*diagnosis.checks, *check_connections(settings)]
    if is_container:
        checks += check_container(HostFacts.here(), _directories(settings))
    if any(check.name == "launcher" and check.state is HostCheckState.MISSING for check in diagnosis.checks):
        return DoctorReport(tuple(checks))  # no program can run in the sandbox
    return DoctorReport((*checks, *await check_toolchains(load_languages())))


def check_connections(settings: Settings) -> list[HostCheck]:
    """One check for each server on another machine that is used without TLS or without a password."""
    return [
        HostCheck(
            found.service,
            HostCheckState.DEGRADED,
            f"{found.setting}: {', '.join(found.hosts)} without {' and without '.join(found.missing)}",
            found.consequence[:1].upper() + found.consequence[1:],
            found.fix,
        )
        for found in find_unprotected(settings)
    ]


def _directories(settings: Settings) -> list[Path]:
    """What a worker writes."""
    caches = (settings.worker.cache_dir, settings.judge.cache_dir)
    return [default_state_dir(), Path(tempfile.gettempdir()), *(folder.expanduser() for folder in caches)]


async def check_toolchains(
    languages: Languages, find_program: Callable[[str], str | None] = shutil.which
) -> list[HostCheck]:
    """Languages usable in the sandbox, and programs on the PATH that do not work there."""
    usable, unusable = [], []
    async with Sandbox(slots=1, unsafe=True) as box:
        for language in languages:
            await languages.version(language, box)
            toolchain = languages.toolchain(language)
            if toolchain.usable:
                usable.append(language.name)
            elif path := find_program(language.tools[0]):
                unusable.append(f"{path} ({language.name}: {toolchain.missing})")
    meaning = "Languages without a toolchain are disabled. Versions were queried in the sandbox."
    checks = [HostCheck("toolchains", HostCheckState.OK, ", ".join(usable), meaning)]
    if not usable:
        fix = "Install the toolchains of the languages you want to offer; `adjudge languages` lists the packages."
        checks = [HostCheck("toolchains", HostCheckState.DEGRADED, "none", meaning, fix)]
    if unusable:
        meaning = "These programs are on the PATH but do not run in the sandbox: their languages are disabled."
        fix = "Install them system-wide, below /usr; shims in a home folder depend on files outside the sandbox."
        checks.append(HostCheck("toolchains outside", HostCheckState.DEGRADED, "; ".join(unusable), meaning, fix))
    return checks


def as_dict(diagnosis: DoctorReport) -> dict[str, object]:
    """The diagnosis as the JSON that --json prints."""
    return {"may_run_untrusted": diagnosis.may_run_untrusted, "checks": [asdict(check) for check in diagnosis.checks]}


def _print(diagnosis: DoctorReport, *, is_allowed: bool) -> None:
    for check in diagnosis.checks:
        state = click.style(f"{check.state:<9}", fg=_COLOURS[check.state])
        click.echo(f"{state} {check.name}: {check.observed}")
        click.echo(f"          {check.consequence}")
        if check.state is not HostCheckState.OK:
            click.echo(f"          Fix: {check.fix}")
    if diagnosis.may_run_untrusted:
        click.echo("Untrusted code is safe to run on this machine.")
    else:
        consequence = "but judge.allow_without_cgroup allows it" if is_allowed else "and is refused"
        warning = f"Untrusted code is NOT safe to run on this machine, {consequence}: fix what is missing above."
        click.echo(click.style(warning, fg="red"))
